#include "model/layers.h"

#include <utility>

#include "base/checked.h"

namespace vram::arch {

namespace {

// GPT-2's Conv1D stores [in, out]; the quantizers see through it.
void matrix(TensorList& t, const Style& s, const std::string& module, std::string_view leaf, int64_t out, int64_t in,
            Role role, Shard shard, bool bias) {
  if (!s.transposed) {
    t.linear(module, leaf, out, in, role, shard, bias);
    return;
  }
  std::string base = dotted(module, leaf);
  Tensor& w = t.add(base + ".weight", module, {in, out}, role, shard);
  w.linear = true;
  if (bias)
    t.add(std::move(base) + ".bias", module, {out}, Role::bias, shard == Shard::row ? Shard::replicated : shard);
}

void index_tensors(TensorList& t, const std::string& module, const Attention& a, const Style& s, int64_t hidden) {
  if (a.index_heads == 0) return;
  const int64_t from = a.q_lora_rank > 0 ? a.q_lora_rank : hidden;
  t.linear(module, s.index_q, checked_mul(a.index_heads, a.index_head_dim), from, Role::attention_other,
           Shard::replicated);
  t.linear(module, s.index_k, a.index_head_dim, hidden, Role::attention_other, Shard::replicated);
  t.norm(module, "indexer.k_norm", a.index_head_dim, NormKind::layernorm, true);
  t.linear(module, "indexer.weights_proj", a.index_heads, hidden, Role::attention_other, Shard::replicated);
}

}  // namespace

void mla_tensors(TensorList& t, const std::string& module, const Attention& a, const Style& s, int64_t hidden) {
  const int64_t q_width = checked_mul(a.heads, a.nope_head_dim + a.rope_head_dim);
  if (a.q_lora_rank > 0) {
    t.linear(module, "q_a_proj", a.q_lora_rank, hidden, Role::attention_other, Shard::replicated, a.qkv_bias);
    t.norm(module, "q_a_layernorm", a.q_lora_rank, NormKind::rmsnorm, false);
    t.linear(module, "q_b_proj", q_width, a.q_lora_rank, Role::attention_q, Shard::column);
  } else {
    t.linear(module, s.q, q_width, hidden, Role::attention_q, Shard::column);
  }
  t.linear(module, "kv_a_proj_with_mqa", a.kv_lora_rank + a.rope_head_dim, hidden, Role::attention_other,
           Shard::replicated, a.qkv_bias);
  t.norm(module, "kv_a_layernorm", a.kv_lora_rank, NormKind::rmsnorm, false);
  t.linear(module, "kv_b_proj", checked_mul(a.heads, a.nope_head_dim + a.value_head_dim), a.kv_lora_rank,
           Role::attention_k, Shard::column);
  t.linear(module, s.o, hidden, checked_mul(a.heads, a.value_head_dim), Role::attention_out, Shard::row, a.out_bias);
  if (!s.attention_gate.empty()) {
    t.linear(module, s.attention_gate, checked_mul(a.heads, a.value_head_dim), hidden, Role::attention_other,
             Shard::column);
  }
  index_tensors(t, module, a, s, hidden);
}

void attention_tensors(TensorList& t, const std::string& layer, const Attention& a, const Style& s, int64_t hidden) {
  if (a.kind == AttentionKind::none) return;
  const std::string module = dotted(layer, s.attention);
  if (a.kind == AttentionKind::mla) {
    mla_tensors(t, module, a, s, hidden);
    return;
  }
  const int64_t q_width = checked_mul(a.heads, a.head_dim * (a.output_gate ? 2 : 1));
  const int64_t k_width = checked_mul(a.kv_heads, a.head_dim);
  const int64_t v_width = checked_mul(a.kv_heads, a.value_head_dim);
  const bool grouped = a.kv_heads < a.heads;
  const bool q_bias = a.qkv_bias && s.q_and_v_bias;
  if (!s.fused_qkv.empty()) {
    matrix(t, s, module, s.fused_qkv, checked_add(q_width, checked_add(k_width, v_width)), hidden, Role::attention_qkv,
           Shard::column, a.qkv_bias);
  } else {
    const Shard kv = grouped ? Shard::kv_column : Shard::column;
    t.linear(module, s.q, q_width, hidden, Role::attention_q, Shard::column, q_bias);
    if (!a.shares_kv || s.separate_kv_of_sharing) {
      t.linear(module, s.k, k_width, hidden, Role::attention_k, kv, a.qkv_bias && s.k_bias);
      if (!a.k_equals_v) t.linear(module, s.v, v_width, hidden, Role::attention_v, kv, q_bias);
    }
  }
  matrix(t, s, module, s.o, hidden, checked_mul(a.heads, a.value_head_dim), Role::attention_out, Shard::row,
         a.out_bias);
  const bool has_k = !a.shares_kv || s.separate_kv_of_sharing;
  if (a.qk_norm == Attention::QkNorm::per_head) {
    t.norm(module, s.q_norm, a.head_dim, s.qk_norm_kind, s.qk_norm_bias);
    if (has_k) t.norm(module, s.k_norm, a.head_dim, s.qk_norm_kind, s.qk_norm_bias);
  } else if (a.qk_norm == Attention::QkNorm::full_width) {
    t.norm(module, s.q_norm, checked_mul(a.heads, a.head_dim), s.qk_norm_kind, s.qk_norm_bias);
    if (has_k) t.norm(module, s.k_norm, k_width, s.qk_norm_kind, s.qk_norm_bias);
  }
  if (a.sinks) t.add(dotted(module, s.sinks), module, {a.heads}, Role::attention_other, Shard::column);
  if (!s.attention_gate.empty()) {
    t.linear(module, s.attention_gate, checked_mul(a.heads, a.value_head_dim), hidden, Role::attention_other,
             Shard::column);
  }
  index_tensors(t, module, a, s, hidden);
}

void mlp_tensors(TensorList& t, const std::string& module, const Mlp& m, const Style& s, int64_t hidden) {
  if (m.kind == MlpKind::none || m.ffn == 0) return;
  const bool gated = m.kind == MlpKind::gated || (m.kind == MlpKind::moe && m.expert_gated);
  if (gated && !s.fused_gate_up.empty()) {
    t.linear(module, s.fused_gate_up, checked_mul(2, m.ffn), hidden, Role::mlp_gate_up, Shard::column, m.bias);
  } else {
    if (gated) t.linear(module, s.gate, m.ffn, hidden, Role::mlp_gate, Shard::column, m.bias);
    matrix(t, s, module, s.up, m.ffn, hidden, Role::mlp_up, Shard::column, m.bias);
  }
  matrix(t, s, module, s.down, hidden, m.ffn, Role::mlp_down, Shard::row, m.bias);
}

void expert_tensors(TensorList& t, const std::string& module, const Mlp& m, const Style& s, int64_t width) {
  const int64_t in_rows = m.expert_gated ? checked_mul(2, m.expert_ffn) : m.expert_ffn;
  if (!s.stacked_gate_up.empty()) {
    const Role role = m.expert_gated ? Role::expert_gate_up : Role::expert_up;
    std::vector<int64_t> in{m.experts, in_rows, width}, out{m.experts, width, m.expert_ffn};
    if (s.stacked_in_first) {
      std::swap(in[1], in[2]);
      std::swap(out[1], out[2]);
    }
    t.add(dotted(module, s.stacked_gate_up), module, std::move(in), role, Shard::expert_column).linear = true;
    if (m.expert_bias) {
      t.add(dotted(module, s.stacked_gate_up) + "_bias", module, {m.experts, in_rows}, Role::bias,
            Shard::expert_column);
    }
    t.add(dotted(module, s.stacked_down), module, std::move(out), Role::expert_down, Shard::expert_row).linear = true;
    if (m.expert_bias) {
      t.add(dotted(module, s.stacked_down) + "_bias", module, {m.experts, width}, Role::bias, Shard::expert_replicated);
    }
    return;
  }
  const std::string base = dotted(module, s.experts);
  const auto one = [&](const std::string& leaf, int64_t out, int64_t in, Role role, Shard shard) {
    Tensor& w = t.add(dotted(base, leaf) + ".weight", module, {out, in}, role, shard);
    w.experts = m.experts;
    w.linear = true;
    if (m.expert_bias) {
      Tensor& b = t.add(dotted(base, leaf) + ".bias", module, {out}, Role::bias,
                        shard == Shard::expert_row ? Shard::expert_replicated : shard);
      b.experts = m.experts;
    }
  };
  if (m.expert_gated) one(s.expert_gate, m.expert_ffn, width, Role::expert_gate, Shard::expert_column);
  one(s.expert_up, m.expert_ffn, width, Role::expert_up, Shard::expert_column);
  one(s.expert_down, width, m.expert_ffn, Role::expert_down, Shard::expert_row);
}

void moe_tensors(TensorList& t, const std::string& module, const Mlp& m, const Style& s, int64_t hidden) {
  t.linear(module, s.router, m.experts, hidden, Role::router, Shard::replicated, s.router_bias);
  if (!s.correction_bias.empty()) {
    // Kept in 32 bits by the checkpoints: it is nudged by small steps during training.
    Tensor& b = t.add(dotted(module, s.correction_bias), module, {m.experts}, Role::router);
    b.dtype = Dtype::f32;
    b.learned = s.correction_bias_learned;
  }
  const int64_t width = m.latent > 0 ? m.latent : hidden;
  if (m.latent > 0) {
    t.linear(module, s.latent_in, m.latent, hidden, Role::mlp_up, Shard::replicated);
    if (!s.latent_norm.empty()) t.norm(module, s.latent_norm, m.latent, NormKind::rmsnorm, false);
    t.linear(module, s.latent_out, hidden, m.latent, Role::mlp_down, Shard::replicated);
  }
  expert_tensors(t, module, m, s, width);
  if (m.shared_ffn == 0) return;
  const std::string shared = dotted(module, s.shared);
  if (m.expert_gated && !s.shared_fused_gate_up.empty()) {
    t.linear(shared, s.shared_fused_gate_up, checked_mul(2, m.shared_ffn), hidden, Role::shared_expert, Shard::column,
             m.bias);
  } else {
    if (m.expert_gated) t.linear(shared, s.gate, m.shared_ffn, hidden, Role::shared_expert, Shard::column, m.bias);
    t.linear(shared, s.up, m.shared_ffn, hidden, Role::shared_expert, Shard::column, m.bias);
  }
  t.linear(shared, s.down, hidden, m.shared_ffn, Role::shared_expert, Shard::row, m.bias);
  if (m.shared_gate) t.linear(module, s.shared_gate, 1, hidden, Role::router, Shard::replicated);
}

namespace {

void layer_tensors(const Decoder& d, TensorList& t, const Layer& layer, const std::string& prefix) {
  const Style& s = d.style;
  for (const std::string& norm : s.norms) t.norm(prefix, norm, d.hidden, layer.kind.norm, s.norm_bias);
  if (!d.mixer || !d.mixer(t, layer, prefix)) attention_tensors(t, prefix, layer.kind.attention, s, d.hidden);
  if (!d.mlp || !d.mlp(t, layer, prefix)) {
    if (layer.kind.mlp.kind == MlpKind::moe) {
      moe_tensors(t, dotted(prefix, s.moe), layer.kind.mlp, s, d.hidden);
    } else {
      mlp_tensors(t, dotted(prefix, s.mlp), layer.kind.mlp, s, d.hidden);
    }
  }
  if (d.extra) d.extra(t, layer, prefix);
}

void mtp_tensors(const Decoder& d, Assembly& assembly) {
  const Decoder::Mtp& mtp = d.mtp;
  if (mtp.count == 0) return;
  const Style& s = d.style;
  if (!mtp.numbered) {
    TensorList t = assembly.once(TensorGroup::Part::mtp);
    t.linear("mtp", "fc", d.hidden, checked_mul(2, d.hidden), Role::mtp, Shard::replicated);
    t.norm("mtp", "pre_fc_norm_embedding", d.hidden, d.norm, false);
    t.norm("mtp", "pre_fc_norm_hidden", d.hidden, d.norm, false);
    t.norm("mtp", "norm", d.hidden, d.norm, false);
    Decoder inner = d;
    inner.style.root = "mtp";
    inner.style.layers = "layers";
    assembly.tower(TensorGroup::Part::mtp, 0, mtp.count,
                   [&](TensorList list) { layer_tensors(inner, list, mtp.layer, inner.style.layer()); });
    return;
  }
  assembly.tower(TensorGroup::Part::mtp, d.layers, mtp.count, [&](TensorList t) {
    const std::string prefix = s.layer();
    t.norm(prefix, "enorm", d.hidden, d.norm, false);
    t.norm(prefix, "hnorm", d.hidden, d.norm, false);
    t.linear(prefix, "eh_proj", d.hidden, checked_mul(2, d.hidden), Role::mtp, Shard::replicated);
    t.norm(prefix, "shared_head.norm", d.hidden, d.norm, false);
    if (mtp.own_embeddings) {
      t.table(prefix, "embed_tokens", d.vocab, d.hidden, Role::embedding, Shard::vocab);
      t.linear(prefix, "shared_head.head", d.vocab, d.hidden, Role::head, Shard::vocab);
    }
    layer_tensors(d, t, mtp.layer, prefix);
  });
}

}  // namespace

void build_decoder(const Decoder& d, Assembly& assembly) {
  Model& model = assembly.model();
  model.hidden = d.hidden;
  model.vocab = d.vocab;
  model.tied_embeddings = d.tied;
  model.learned_positions = d.position_rows > 0;
  const Style& s = d.style;
  constexpr auto kText = TensorGroup::Part::text;
  const int64_t embedding_width = d.embedding_width > 0 ? d.embedding_width : d.hidden;
  {
    TensorList t = assembly.once(kText);
    const std::string& embedding_root = s.embedding_root.empty() ? s.root : s.embedding_root;
    if (d.vocab > 0) t.table(embedding_root, s.embedding, d.vocab, embedding_width, Role::embedding, Shard::vocab);
    if (d.position_rows > 0) {
      t.table(s.root, s.positions, d.position_rows, d.hidden, Role::position_embedding, Shard::replicated);
    }
    if (!s.embedding_norm.empty()) t.norm(s.root, s.embedding_norm, d.hidden, d.norm, s.norm_bias);
    if (d.outer) d.outer(t, s.root);
  }
  const std::string prefix = s.layer();
  for (int64_t i = 0; i < d.layers; ++i) {
    const Layer layer = d.layer(i);
    assembly.layer(kText, i, layer.kind, layer.variant, [&](TensorList t) { layer_tensors(d, t, layer, prefix); });
  }
  TensorList t = assembly.once(kText);
  if (!s.final_norm.empty()) t.norm(s.root, s.final_norm, d.hidden, d.norm, s.norm_bias);
  if (!d.tied && !s.head.empty()) {
    const size_t dot = s.head.rfind('.');
    const std::string module = dot == std::string::npos ? std::string() : s.head.substr(0, dot);
    t.linear(module, dot == std::string::npos ? s.head : s.head.substr(dot + 1), d.vocab, embedding_width, Role::head,
             Shard::vocab, d.head_bias);
  }
  mtp_tensors(d, assembly);
}

}  // namespace vram::arch
