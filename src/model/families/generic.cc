// "model_type": "decoder", and configs of families that are not listed: every field that decoders commonly have counts.
#include <fmt/format.h>

#include "base/checked.h"
#include "model/families/families.h"

namespace vram::arch {

namespace {

using QkNorm = Attention::QkNorm;

bool has_experts(const Reader& r) {
  return r.count_or({"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"}, 0, kMaxExperts) > 1;
}

Mlp generic_experts(const Reader& r, const Sizes& s, bool gated) {
  Mlp m;
  if (r.text().has({"moe_intermediate_size", "expert_ffn_hidden_size"})) {
    m = r.moe({"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"},
              {"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "moe_top_k", "top_k_experts",
               "experts_per_token"},
              {"moe_intermediate_size", "expert_ffn_hidden_size"});
  } else {
    m = r.moe({"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"},
              {"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "moe_top_k", "top_k_experts",
               "experts_per_token"},
              {"intermediate_size", "ffn_hidden_size"});
    r.not_given("moe_intermediate_size", fmt::format("{}", s.ffn));
  }
  m.expert_gated = gated;
  const int64_t shared =
      r.count_or({"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"}, 0, kMaxExperts);
  m.shared_ffn = r.count_or({"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
                             "shared_intermediate_size", "share_expert_dim"},
                            checked_mul(shared, m.expert_ffn), kMaxVocab);
  return m;
}

}  // namespace

Decoder generic_decoder(const Reader& r) {
  Sizes s;
  s.hidden = r.hidden();
  s.layers = r.layers();
  s.heads = r.heads();
  s.kv_heads = r.kv_heads(s.heads);
  const bool latent = r.count_or({"kv_lora_rank"}, 0) > 0;
  s.head_dim = latent ? r.size_or({"head_dim"}, 1) : r.head_dim(s.hidden, s.heads);
  s.vocab = r.vocab();
  s.positions = r.positions();
  const std::string activation = r.activation("silu");
  if (!r.text().has({"hidden_act", "hidden_activation", "activation_function"})) {
    r.not_given("hidden_act", "silu");
  }
  if (!r.text().has({"gated_mlp"})) r.not_given("gated_mlp", "true");
  const bool gated = r.flag({"gated_mlp"}, true);
  if (!r.text().has({"norm"})) r.not_given("norm", "rmsnorm");
  const std::string norm = r.word({"norm"}, "rmsnorm");
  if (norm != "rmsnorm" && norm != "layernorm") r.text().refuse("norm", "is unknown", "rmsnorm or layernorm");
  const std::string positions = r.word({"position_embedding", "position_embedding_type"}, "rope");
  if (positions != "rope" && positions != "learned" && positions != "absolute" && positions != "alibi" &&
      positions != "none") {
    r.text().refuse("position_embedding", "is unknown", "learned, rope, alibi or none");
  }
  const bool attention_bias = r.flag({"attention_bias", "use_bias", "bias"}, false);
  const bool mlp_bias = r.flag({"mlp_bias", "use_bias"}, false);
  if (!r.text().has({"attention_bias", "use_bias", "bias"})) r.not_given("attention_bias", "false");

  LayerKind dense;
  dense.norm = norm == "layernorm" ? NormKind::layernorm : NormKind::rmsnorm;
  if (latent) {
    Attention& a = dense.attention;
    a.kind = AttentionKind::mla;
    a.heads = a.kv_heads = s.heads;
    a.q_lora_rank = r.count_or({"q_lora_rank"}, 0);
    a.kv_lora_rank = r.size({"kv_lora_rank"});
    a.nope_head_dim = r.size({"qk_nope_head_dim"});
    a.rope_head_dim = r.size({"qk_rope_head_dim"});
    a.value_head_dim = r.size({"v_head_dim"});
    a.head_dim = a.nope_head_dim + a.rope_head_dim;
  } else {
    dense.attention = r.attention(s);
    dense.attention.value_head_dim = r.size_or({"v_head_dim"}, s.head_dim);
    if (r.flag({"qk_norm", "use_qk_norm"}, false)) dense.attention.qk_norm = QkNorm::per_head;
  }
  dense.attention.qkv_bias = attention_bias || r.flag({"qkv_bias", "use_qkv_bias", "add_qkv_bias"}, false);
  dense.attention.out_bias = attention_bias;
  r.dropouts(dense);

  const bool experts = has_experts(r);
  s.ffn = experts ? r.ffn(checked_mul(4, s.hidden)) : r.ffn();
  dense.mlp = r.gated(s);
  dense.mlp.kind = gated ? MlpKind::gated : MlpKind::plain;
  dense.mlp.bias = mlp_bias;
  dense.mlp.activation = activation;
  LayerKind sparse = dense;
  if (experts) {
    sparse.mlp = generic_experts(r, s, gated);
    sparse.mlp.activation = activation;
    sparse.mlp.bias = mlp_bias;
    sparse.mlp.expert_bias = mlp_bias;
  }
  const int64_t first = r.count_or({"first_k_dense_replace"}, 0, kMaxLayers);
  std::vector<bool> is_sparse(static_cast<size_t>(s.layers), false);
  if (experts) {
    if (const Document* f = r.text().find({"moe_layer_freq"}); f && f->is_array()) {
      const auto list = *r.layer_numbers({"moe_layer_freq"}, s.layers, {0, 1});
      for (size_t i = 0; i < is_sparse.size(); ++i) is_sparse[i] = list[i] != 0;
    } else {
      const int64_t step = r.size_or({"moe_layer_freq", "decoder_sparse_step"}, 1, kMaxLayers);
      for (int64_t i = first; i < s.layers; ++i) is_sparse[static_cast<size_t>(i)] = (i - first) % step == 0;
    }
  }
  const int64_t window = r.size_or({"sliding_window"}, 0, kMaxPositions);
  std::vector<AttentionKind> kinds(static_cast<size_t>(s.layers), AttentionKind::full);
  if (r.text().has({"layer_types"})) {
    kinds = r.attention_kinds(s.layers, [](int64_t) { return AttentionKind::full; });
  } else if (window > 0 && r.flag({"use_sliding_window"}, true)) {
    const int64_t period = r.count_or({"sliding_window_pattern"}, 0, kMaxLayers);
    for (int64_t i = 0; i < s.layers; ++i) {
      if (period == 0 || (i + 1) % period != 0) kinds[static_cast<size_t>(i)] = AttentionKind::sliding;
    }
  }
  bool replaced = false;
  for (AttentionKind& kind : kinds) {
    if (kind == AttentionKind::sliding || kind == AttentionKind::chunked || kind == AttentionKind::full) continue;
    kind = AttentionKind::full;
    replaced = true;
  }
  if (replaced) r.assume("model.assume.mixers_as_attention");
  const int64_t chunk = r.size_or({"attention_chunk_size"}, 8192, kMaxPositions);

  Decoder d = r.decoder(s);
  d.norm = dense.norm;
  d.style.norm_bias = dense.norm == NormKind::layernorm;
  d.style.qk_norm_kind = dense.norm;
  d.style.qk_norm_bias = d.style.norm_bias;
  d.style.positions = "embed_positions";
  if (positions == "learned" || positions == "absolute") {
    if (s.positions == 0) {
      r.not_given("max_position_embeddings", "2048");
      s.positions = 2048;
      r.model().max_positions = s.positions;
    }
    d.position_rows = s.positions;
  }
  d.layer = [=](int64_t i) {
    const auto at = static_cast<size_t>(i);
    Layer layer{is_sparse[at] ? sparse : dense, 0};
    Attention& a = layer.kind.attention;
    if (a.kind == AttentionKind::full) a.kind = kinds[at];
    if (a.kind == AttentionKind::sliding) a.window = window > 0 ? window : 4096;
    if (a.kind == AttentionKind::chunked) a.window = chunk;
    return layer;
  };
  d.mtp.count = r.count_or({"num_nextn_predict_layers"}, 0, kMaxLayers);
  if (d.mtp.count > 0) d.mtp.layer = d.layer(s.layers - 1);
  return d;
}

}  // namespace vram::arch
