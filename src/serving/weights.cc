#include "serving/weights.h"

#include <algorithm>

#include "base/error.h"

namespace vram {

std::string_view part_name(Part part) {
  switch (part) {
    case Part::embedding:
      return "embedding";
    case Part::head:
      return "head";
    case Part::attention:
      return "attention";
    case Part::mixer:
      return "mixer";
    case Part::mlp:
      return "mlp";
    case Part::experts:
      return "experts";
    case Part::norms:
      return "norms";
    case Part::other:
      return "small_tensors";
    case Part::vision:
      return "vision";
    case Part::audio:
      return "audio";
    case Part::all:
      return "all";
  }
  return "?";
}

namespace {

Part part_of(const Tensor& t, TensorGroup::Part group) {
  if (group == TensorGroup::Part::vision) return Part::vision;
  if (group == TensorGroup::Part::audio) return Part::audio;
  const auto within = [&](std::string_view word) { return t.module.find(word) != std::string::npos; };
  switch (t.role) {
    case Role::embedding:
    case Role::position_embedding:
      return Part::embedding;
    case Role::head:
      return Part::head;
    case Role::norm:
      return Part::norms;
    case Role::attention_q:
    case Role::attention_k:
    case Role::attention_v:
    case Role::attention_qkv:
    case Role::attention_out:
    case Role::attention_other:
      return Part::attention;
    case Role::linear_attention:
    case Role::mamba:
    case Role::convolution:
    case Role::rwkv:
      return Part::mixer;
    case Role::mlp_gate:
    case Role::mlp_up:
    case Role::mlp_gate_up:
    case Role::mlp_down:
      return Part::mlp;
    case Role::router:
    case Role::expert_gate:
    case Role::expert_up:
    case Role::expert_gate_up:
    case Role::expert_down:
    case Role::shared_expert:
      return Part::experts;
    case Role::vision:
    case Role::projector:
      return Part::vision;
    case Role::audio:
      return Part::audio;
    case Role::bias:
    case Role::scale:
      if (within("expert")) return Part::experts;
      if (within("mlp")) return Part::mlp;
      if (within("attn") || within("attention")) return Part::attention;
      return Part::other;
    case Role::mtp:
    case Role::other:
      return Part::other;
  }
  return Part::other;
}

bool is_expert(Shard shard) {
  return shard == Shard::expert_column || shard == Shard::expert_row || shard == Shard::expert_replicated;
}

// Buffers and copies are in the file, but no engine keeps them; the scales of quantized matrices are kept.
bool is_loaded(const Tensor& t) { return t.learned || t.role == Role::scale; }

// A tensor is cut along one dimension: `part` of `unit` rows stay on the rank.
template <Number N>
struct Cut {
  N part{1};
  int64_t unit = 1;
};

template <Number N>
Cut<N> cut(const Tensor& t, const std::vector<int64_t>& shape, const Attention* attention, const ServePlan& plan) {
  const int64_t tensor = plan.textbook ? 1 : plan.parallel.tensor;
  const N tp = N::symbol("tp", tensor);
  const int64_t rows = shape.empty() ? 1 : shape.front();
  const int64_t columns = shape.empty() ? 1 : shape.back();
  const int64_t heads = attention ? attention->heads : 0, kv = attention ? attention->kv_heads : 0;
  // Query, key and value rows in one matrix: the KV part replicates as it does when it stands alone.
  if (t.role == Role::attention_qkv && t.shard != Shard::replicated && t.shard != Shard::row && tensor > kv && kv > 0 &&
      rows % (heads + 2 * kv) == 0) {
    const N per_head = N::symbol("d", rows / (heads + 2 * kv));
    return {(ceil_div(N::symbol("n_q", heads), tp) + N(2) * ceil_div(N::symbol("n_kv", kv), tp)) * per_head, rows};
  }
  switch (t.shard) {
    case Shard::replicated:
      return {};
    case Shard::column:
      return {ceil_div(N::symbol("rows", rows), tp), rows};
    case Shard::row:
      return {ceil_div(N::symbol("columns", columns), tp), columns};
    case Shard::kv_column:
      if (kv > 0 && rows % kv == 0) {
        return {ceil_div(N::symbol("n_kv", kv), tp) * N::symbol("d", rows / kv), rows};
      }
      return {ceil_div(N::symbol("rows", rows), tp), rows};
    case Shard::vocab: {
      // Scales of a quantized head that don't run over its rows stand whole on every rank.
      if (plan.textbook || (t.role == Role::scale && rows != plan.model->vocab)) return {};
      const N padding = N::constant(plan.rules.vocabulary_padding);
      return {ceil_div(ceil_div(N::symbol("V", rows), padding) * padding, tp), rows};
    }
    case Shard::expert_column:
      return {ceil_div(N::symbol("rows", rows), N::symbol("etp", plan.parallel.expert_tensor())), rows};
    case Shard::expert_row:
      return {ceil_div(N::symbol("columns", columns), N::symbol("etp", plan.parallel.expert_tensor())), columns};
    case Shard::expert_replicated:
      return {};
  }
  return {};
}

template <Number N>
N bytes_of(const Tensor& t, int64_t stored, int64_t elements, const Cut<N>& c) {
  const bool plain =
      bits(t.dtype) % 8 == 0 && elements % c.unit == 0 && stored == checked_mul(elements, bits(t.dtype) / 8);
  if (plain) return c.part * N(elements / c.unit) * N(bits(t.dtype) / 8);
  if (c.unit == 1) return N(stored);
  return ceil_div(N::symbol("stored", stored) * c.part, N(c.unit));
}

int64_t layers_within(const TensorGroup& group, int64_t offset, const Stage& stage) {
  int64_t n = 0;
  for (int64_t layer : group.layers) n += layer + offset >= stage.first && layer + offset < stage.end;
  return n;
}

int64_t product(const std::vector<int64_t>& shape, size_t from) {
  int64_t n = 1;
  for (size_t i = from; i < shape.size(); ++i) n = checked_mul(n, shape[i]);
  return n;
}

}  // namespace

template <Number N>
std::vector<WeightLine<N>> weights_of_rank(const ServePlan& plan, const RankClass& rank) {
  std::vector<WeightLine<N>> out;
  if (!plan.weights_by_table) {
    const int64_t ranks = plan.parallel.replica() / plan.pooled();
    out.push_back({.name = "weights",
                   .part = Part::all,
                   .each = ceil_div(weights_by_size<N>(plan), N::symbol("cards", ranks)),
                   .read = true});
    return out;
  }
  const Model& model = *plan.model;
  int64_t encoder_layers = 0;
  for (int64_t i = 0; i < model.layers(); ++i) encoder_layers += model.layer(i).encoder;
  for (const TensorGroup& group : model.tensors) {
    if (group.part == TensorGroup::Part::mtp) continue;
    const bool tower = group.part == TensorGroup::Part::vision || group.part == TensorGroup::Part::audio;
    const bool sequence = !tower && !group.layers.empty();
    // Layer numbers restart in the decoder of a model with an encoder.
    const int64_t offset = group.part == TensorGroup::Part::text ? encoder_layers : 0;
    const int64_t layers = sequence ? layers_within(group, offset, rank.layers) : group.times();
    if (layers == 0) continue;
    const LayerKind* kind = sequence ? &model.layer(group.layers.front() + offset) : nullptr;
    for (const Tensor& t : group.tensors) {
      if (!is_loaded(t)) continue;
      const Part part = part_of(t, group.part);
      const bool tied = model.tied_embeddings && part == Part::embedding && t.role == Role::embedding;
      if (!sequence) {
        const bool late = part == Part::head || part == Part::norms;
        if (!(late ? rank.last() : rank.first()) && !(tied && rank.last())) continue;
      }
      WeightLine<N> line{.name = t.name, .part = part};
      std::vector<int64_t> shape = t.shape;
      int64_t copies = t.experts, stored = t.stored_bytes;
      line.routed = is_expert(t.shard) && kind && kind->mlp.experts > 0;
      if (line.routed) {
        line.experts = kind->mlp.experts;
        line.experts_per_token = kind->mlp.experts_per_token;
        if (copies == 1 && shape.size() > 1 && shape.front() == line.experts) {  // all experts in one tensor
          copies = line.experts;
          stored = ceil_div(stored, copies);
          shape.erase(shape.begin());
        }
        const int64_t ep = plan.parallel.expert;
        copies = rank.more_experts ? ceil_div(copies, ep) : copies / ep;
        if (copies == 0) continue;
      }
      const int64_t elements = product(shape, 0);
      const Cut<N> c = cut<N>(t, shape, kind ? &kind->attention : nullptr, plan);
      line.count = checked_mul(layers, copies);
      line.each = bytes_of<N>(t, stored, elements, c);
      line.elements = static_cast<double>(elements) / static_cast<double>(c.unit) * static_cast<double>(c.part.value());
      const bool decoder = group.part == TensorGroup::Part::text;
      const bool table = part == Part::embedding && !(tied && rank.last());
      line.multiplied = decoder && t.learned && !table && shape.size() > 1;
      line.read = decoder && !table;
      out.push_back(std::move(line));
    }
  }
  return out;
}

void check_size_scheme(const std::string& scheme) {
  for (std::string_view known : {"checkpoint", "bf16", "fp16", "fp32", "fp8", "int8", "int4", "nf4"}) {
    if (scheme == known) return;
  }
  throw InputError({.field = "--weights-dtype",
                    .value = scheme,
                    .problem = "is not known for a model of which only the size is given",
                    .accepted = "bf16, fp16, fp32, fp8, int8, int4, nf4"});
}

template <Number N>
N weights_by_size(const ServePlan& plan) {
  if (plan.given_weights) return N::symbol("weights", *plan.given_weights);
  const N p = N::symbol("P", plan.parameters);
  const std::string& scheme = plan.weights_dtype;
  const ServingRules& r = plan.rules;
  if (scheme == "fp32") return p * N(4);
  if (scheme == "fp8" || scheme == "int8") return p;
  if (scheme == "int4" || scheme == "nf4") {
    const N half = ceil_div(p, N(2));
    if (plan.textbook) return half;
    if (scheme == "nf4") {
      return half + ceil_div(ceil_div(p, N::constant(r.nf4_block)) * N::constant(r.nf4_absmax_bits), N(8));
    }
    const N groups = ceil_div(p, N::constant(r.int4_group));
    return half + ceil_div(groups * (N::constant(r.int4_scale_bits) + N::constant(r.int4_zero_bits)), N(8));
  }
  const bool as_stored = scheme == "checkpoint" || is_gguf_mix(scheme);
  if (as_stored && plan.model->quantization && plan.model->counts.loaded_bytes > 0) {
    return N::symbol("stored", plan.model->counts.loaded_bytes);
  }
  if (scheme == "checkpoint") return p * N(bits(plan.model->dtype) / 8);
  return p * N(2);
}

template std::vector<WeightLine<Fast>> weights_of_rank<Fast>(const ServePlan&, const RankClass&);
template std::vector<WeightLine<Traced>> weights_of_rank<Traced>(const ServePlan&, const RankClass&);
template Fast weights_by_size<Fast>(const ServePlan&);
template Traced weights_by_size<Traced>(const ServePlan&);

}  // namespace vram
