// Phi and GLM.
#include "base/checked.h"
#include "model/families/families.h"

namespace vram::arch {

namespace {

using QkNorm = Attention::QkNorm;

LayerKind phi_kind(const Reader& r, const Sizes& s) {
  LayerKind k;
  k.attention = r.attention(s);
  k.attention.qkv_bias = k.attention.out_bias = true;
  if (r.flag({"qk_layernorm"}, false)) k.attention.qk_norm = QkNorm::per_head;
  k.mlp = r.plain(s, "gelu_new");
  k.mlp.bias = true;
  k.norm = NormKind::layernorm;
  k.norms = 1;
  k.parallel = true;
  r.dropouts(k);
  return k;
}

Decoder uniform(const Reader& r, const Sizes& s, const LayerKind& k, bool tied = false) {
  Decoder d = r.decoder(s, tied);
  d.norm = k.norm;
  d.layer = [k](int64_t) { return Layer{k, 0}; };
  return d;
}

}  // namespace

Decoder phi(const Reader& r) {
  const Sizes s = r.sizes(4);
  Decoder d = uniform(r, s, phi_kind(r, s));
  d.style.o = "dense";
  d.style.up = "fc1";
  d.style.down = "fc2";
  d.style.norms = {"input_layernorm"};
  d.style.norm_bias = true;
  d.style.qk_norm_kind = NormKind::layernorm;
  d.style.qk_norm_bias = true;
  d.style.q_norm = "q_layernorm";
  d.style.k_norm = "k_layernorm";
  d.style.final_norm = "final_layernorm";
  d.head_bias = true;
  return d;
}

Decoder phi_msft(const Reader& r) {
  const Sizes s = r.sizes(4);
  Decoder d = uniform(r, s, phi_kind(r, s));
  d.style.root = "transformer";
  d.style.layers = "h";
  d.style.embedding = "embd.wte";
  d.style.attention = "mixer";
  d.style.fused_qkv = "Wqkv";
  d.style.o = "out_proj";
  d.style.up = "fc1";
  d.style.down = "fc2";
  d.style.norms = {"ln"};
  d.style.norm_bias = true;
  d.style.final_norm = "";
  d.style.head = "lm_head.linear";
  d.head_bias = true;
  d.outer = [hidden = s.hidden](TensorList& t, const std::string&) {
    t.norm("lm_head", "ln", hidden, NormKind::layernorm, true);
  };
  return d;
}

Decoder phi3(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k;
  k.attention = r.attention(s);
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, false);
  k.mlp = r.gated(s);
  k.mlp.bias = r.flag({"mlp_bias"}, false);
  r.dropouts(k);
  const int64_t window = r.size_or({"sliding_window"}, 0, kMaxPositions);
  // A window of the whole context is none.
  if (window > 0 && (s.positions == 0 || window < s.positions)) {
    k.attention.kind = AttentionKind::sliding;
    k.attention.window = window;
  }
  Decoder d = uniform(r, s, k);
  d.style.fused_qkv = "qkv_proj";
  d.style.fused_gate_up = "gate_up_proj";
  d.head_bias = r.flag({"lm_head_bias"}, false);
  return d;
}

Decoder phimoe(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k;
  k.attention = r.attention(s);
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, true);
  k.mlp = r.moe({"num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  k.norm = NormKind::layernorm;
  r.dropouts(k);
  const int64_t window = r.size_or({"sliding_window"}, 0, kMaxPositions);
  if (window > 0 && (s.positions == 0 || window < s.positions)) {
    k.attention.kind = AttentionKind::sliding;
    k.attention.window = window;
  }
  Decoder d = uniform(r, s, k);
  d.style.norm_bias = true;
  d.style.moe = "block_sparse_moe";
  d.style.expert_gate = "w1";
  d.style.expert_up = "w3";
  d.style.expert_down = "w2";
  d.head_bias = r.flag({"lm_head_bias"}, true);
  return d;
}

Decoder chatglm(const Reader& r) {
  Sizes s;
  s.hidden = r.hidden();
  s.layers = r.layers();
  s.heads = r.heads();
  s.kv_heads = r.flag({"multi_query_attention"}, false) ? r.kv_heads(s.heads) : s.heads;
  s.head_dim = r.head_dim(s.hidden, s.heads);
  s.ffn = r.ffn();
  s.vocab = r.vocab();
  s.positions = r.positions();
  LayerKind k;
  k.attention = r.attention(s);
  const bool all = r.flag({"add_bias_linear"}, false);
  k.attention.qkv_bias = all || r.flag({"add_qkv_bias"}, true);
  k.attention.out_bias = all;
  k.mlp = r.gated(s);
  k.mlp.bias = all;
  k.norm = r.flag({"rmsnorm"}, true) ? NormKind::rmsnorm : NormKind::layernorm;
  r.dropouts(k);
  Decoder d = uniform(r, s, k);
  d.style.root = "transformer.encoder";
  d.style.attention = "self_attention";
  d.style.fused_qkv = "query_key_value";
  d.style.o = "dense";
  d.style.fused_gate_up = "dense_h_to_4h";
  d.style.down = "dense_4h_to_h";
  d.style.norm_bias = k.norm == NormKind::layernorm;
  d.style.embedding_root = "transformer.embedding";
  d.style.embedding = "word_embeddings";
  d.style.final_norm = r.flag({"post_layer_norm"}, true) ? "final_layernorm" : "";
  d.style.head = "transformer.output_layer";
  return d;
}

namespace {

LayerKind glm_kind(const Reader& r, const Sizes& s) {
  LayerKind k;
  k.attention = r.attention(s);
  k.attention.qkv_bias = r.flag({"attention_bias"}, true);
  k.mlp = r.gated(s);
  r.dropouts(k);
  return k;
}

}  // namespace

Decoder glm(const Reader& r) {
  const Sizes s = r.sizes();
  Decoder d = uniform(r, s, glm_kind(r, s));
  d.style.fused_gate_up = "gate_up_proj";
  return d;
}

Decoder glm4(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = glm_kind(r, s);
  k.norms = 4;
  Decoder d = uniform(r, s, k);
  d.style.fused_gate_up = "gate_up_proj";
  d.style.norms = {"input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm", "post_mlp_layernorm"};
  return d;
}

Decoder glm4_moe(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind dense = glm_kind(r, s);
  if (r.flag({"use_qk_norm"}, false)) dense.attention.qk_norm = QkNorm::per_head;
  LayerKind sparse = dense;
  sparse.mlp = r.moe({"n_routed_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"});
  sparse.mlp.shared_ffn = checked_mul(r.count_or({"n_shared_experts"}, 0, kMaxExperts), sparse.mlp.expert_ffn);
  const int64_t first = r.count_or({"first_k_dense_replace"}, 1, kMaxLayers);
  Decoder d = r.decoder(s);
  d.layer = [=](int64_t i) { return Layer{i < first ? dense : sparse, 0}; };
  d.style.correction_bias = "gate.e_score_correction_bias";
  d.mtp.count = r.count_or({"num_nextn_predict_layers"}, 0, kMaxLayers);
  d.mtp.layer = {sparse, 0};
  return d;
}

}  // namespace vram::arch
