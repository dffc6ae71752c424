#pragma once

// Models and machines in a few numbers, for tests.

#include "job/job.h"
#include "machine/machine.h"
#include "model/model.h"
#include "serving/capacity.h"
#include "serving/plan.h"

namespace vram::fixtures {

struct Shape {
  int64_t layers = 32, hidden = 4096, heads = 32, kv_heads = 32, head_dim = 128, ffn = 11008, vocab = 32000;
  int64_t experts = 0, experts_per_token = 0, expert_ffn = 0;
};

inline Attention attention_of(const Shape& s) {
  Attention a;
  a.heads = s.heads;
  a.kv_heads = s.kv_heads;
  a.head_dim = a.value_head_dim = s.head_dim;
  return a;
}

inline Tensor tensor(std::string name, std::vector<int64_t> shape, Role role, Shard shard, int64_t experts = 1) {
  Tensor t{.name = std::move(name), .shape = std::move(shape), .role = role, .shard = shard, .experts = experts};
  int64_t elements = 1;
  for (int64_t n : t.shape) elements *= n;
  t.stored_bytes = 2 * elements;
  t.linear = t.shape.size() == 2;
  return t;
}

/// A Llama-like decoder in bf16 with separate head; all layers alike.
inline Model decoder(const Shape& s) {
  Model m;
  m.name = "decoder";
  m.hidden = s.hidden;
  m.vocab = s.vocab;
  m.kinds.resize(1);
  LayerKind& kind = m.kinds.front();
  kind.attention = attention_of(s);
  kind.mlp.ffn = s.ffn;
  if (s.experts > 0) {
    kind.mlp.kind = MlpKind::moe;
    kind.mlp.experts = s.experts;
    kind.mlp.experts_per_token = s.experts_per_token;
    kind.mlp.expert_ffn = s.expert_ffn;
  }
  m.layer_kind.assign(static_cast<size_t>(s.layers), 0);
  const int64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  TensorGroup once;
  once.tensors = {tensor("embed_tokens", {s.vocab, s.hidden}, Role::embedding, Shard::vocab),
                  tensor("norm", {s.hidden}, Role::norm, Shard::replicated),
                  tensor("lm_head", {s.vocab, s.hidden}, Role::head, Shard::vocab)};
  TensorGroup layers;
  for (int64_t i = 0; i < s.layers; ++i) layers.layers.push_back(i);
  layers.tensors = {tensor("q_proj", {q, s.hidden}, Role::attention_q, Shard::column),
                    tensor("k_proj", {kv, s.hidden}, Role::attention_k, Shard::kv_column),
                    tensor("v_proj", {kv, s.hidden}, Role::attention_v, Shard::kv_column),
                    tensor("o_proj", {s.hidden, q}, Role::attention_out, Shard::row),
                    tensor("input_norm", {s.hidden}, Role::norm, Shard::replicated),
                    tensor("mlp_norm", {s.hidden}, Role::norm, Shard::replicated)};
  if (s.experts > 0) {
    layers.tensors.push_back(tensor("router", {s.experts, s.hidden}, Role::router, Shard::replicated));
    layers.tensors.push_back(
        tensor("gate", {s.expert_ffn, s.hidden}, Role::expert_gate, Shard::expert_column, s.experts));
    layers.tensors.push_back(tensor("up", {s.expert_ffn, s.hidden}, Role::expert_up, Shard::expert_column, s.experts));
    layers.tensors.push_back(tensor("down", {s.hidden, s.expert_ffn}, Role::expert_down, Shard::expert_row, s.experts));
  } else {
    layers.tensors.push_back(tensor("gate", {s.ffn, s.hidden}, Role::mlp_gate, Shard::column));
    layers.tensors.push_back(tensor("up", {s.ffn, s.hidden}, Role::mlp_up, Shard::column));
    layers.tensors.push_back(tensor("down", {s.hidden, s.ffn}, Role::mlp_down, Shard::row));
  }
  m.tensors = {once, layers};
  for (const TensorGroup& g : m.tensors) {
    for (const Tensor& t : g.tensors) m.counts.parameters += g.times() * t.experts * t.stored_bytes / 2;
  }
  m.counts.loaded_bytes = m.counts.stored_bytes = 2 * m.counts.parameters;
  return m;
}

/// The decoder with other attention in its layers; `pattern` says which of `kinds` each layer has.
inline Model decoder_of(const Shape& s, const std::vector<Attention>& kinds, const std::vector<int64_t>& pattern) {
  Model m = decoder(s);
  const LayerKind first = m.kinds.front();
  m.kinds.assign(kinds.size(), first);
  for (size_t i = 0; i < kinds.size(); ++i) m.kinds[i].attention = kinds[i];
  m.layer_kind = pattern;
  return m;
}

inline Machine cards(int64_t n, Bytes bytes) {
  Machine m;
  m.device.memory_only = true;
  m.device.name = "memory";
  m.device.marketing_bytes = bytes;
  m.cards_per_node = n;
  m.text = std::to_string(n) + " cards";
  return m;
}

inline ServingRules rules_of(const Machine& machine) {
  return serving_rules(Constants::builtin(), machine, std::nullopt);
}

inline ServePlan plan_of(const Model& model, const Machine& machine, const Job& job) {
  return resolve(model, machine, job, rules_of(machine));
}

inline int64_t largest(const Model& model, const Machine& machine, const Job& job) {
  const ServePlan plan = plan_of(model, machine, job);
  return largest_concurrency(prepare(plan), plan.context.value);
}

}  // namespace vram::fixtures
