// Qwen 1 to 3.6. Structures follow the published modelling files of each generation.
#include "base/checked.h"
#include "model/families/families.h"
#include "model/recurrent.h"

namespace vram::arch {

namespace {

using QkNorm = Attention::QkNorm;

// Qwen2 slides only where it is switched on, from layer max_window_layers on.
std::vector<AttentionKind> qwen_windows(const Reader& r, int64_t layers) {
  const bool slides = r.flag({"use_sliding_window"}, false) && r.text().has({"sliding_window"});
  const int64_t first = r.count_or({"max_window_layers"}, layers, kMaxLayers);
  return r.attention_kinds(layers, [slides, first](int64_t i) {
    return slides && i >= first ? AttentionKind::sliding : AttentionKind::full;
  });
}

Decoder with_windows(const Reader& r, const Sizes& s, const LayerKind& sparse, const LayerKind& dense,
                     bool tied_default) {
  Decoder d = r.decoder(s, tied_default);
  const int64_t window = r.size_or({"sliding_window"}, 0, kMaxPositions);
  // Layers with experts: every decoder_sparse_step-th, except those named.
  const int64_t step = r.size_or({"decoder_sparse_step"}, 1, kMaxLayers);
  const auto only_dense = r.text().integers({"mlp_only_layers"}, {0, kMaxLayers}).value_or(std::vector<int64_t>());
  std::vector<bool> is_dense(static_cast<size_t>(s.layers), false);
  for (int64_t i : only_dense) {
    if (i < s.layers) is_dense[static_cast<size_t>(i)] = true;
  }
  d.layer = [=, kinds = qwen_windows(r, s.layers)](int64_t i) {
    const bool plain = is_dense[static_cast<size_t>(i)] || (i + 1) % step != 0;
    Layer layer{plain ? dense : sparse, 0};
    layer.kind.attention.kind = kinds[static_cast<size_t>(i)];
    if (layer.kind.attention.kind == AttentionKind::sliding) layer.kind.attention.window = window;
    return layer;
  };
  return d;
}

LayerKind dense_kind(const Reader& r, const Sizes& s, bool qk_norm, bool qkv_bias) {
  LayerKind k;
  k.attention = r.attention(s);
  k.attention.qkv_bias = qkv_bias;
  if (qk_norm) k.attention.qk_norm = QkNorm::per_head;
  k.mlp = r.gated(s);
  r.dropouts(k);
  return k;
}

}  // namespace

Decoder qwen(const Reader& r) {
  Sizes s = r.sizes();
  s.ffn /= 2;  // Qwen 1 writes the width of gate and up together
  LayerKind k = dense_kind(r, s, false, true);
  k.mlp.bias = !r.flag({"no_bias"}, true);
  k.attention.out_bias = k.mlp.bias;
  Decoder d = r.decoder(s);
  d.layer = [k](int64_t) { return Layer{k, 0}; };
  d.style.root = "transformer";
  d.style.layers = "h";
  d.style.embedding = "wte";
  d.style.attention = "attn";
  d.style.fused_qkv = "c_attn";
  d.style.o = "c_proj";
  d.style.gate = "w2";
  d.style.up = "w1";
  d.style.down = "c_proj";
  d.style.norms = {"ln_1", "ln_2"};
  d.style.final_norm = "ln_f";
  return d;
}

Decoder qwen2(const Reader& r) {
  const Sizes s = r.sizes();
  const LayerKind k = dense_kind(r, s, false, true);
  return with_windows(r, s, k, k, false);
}

Decoder qwen2_moe(const Reader& r) {
  const Sizes s = r.sizes();
  const LayerKind dense = dense_kind(r, s, false, r.flag({"qkv_bias"}, true));
  LayerKind sparse = dense;
  sparse.mlp = r.moe({"num_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"});
  sparse.mlp.shared_ffn = r.count_or({"shared_expert_intermediate_size"}, 0, kMaxVocab);
  sparse.mlp.shared_gate = sparse.mlp.shared_ffn > 0;
  Decoder d = with_windows(r, s, sparse, dense, false);
  d.style.shared = "shared_expert";
  return d;
}

Decoder qwen3(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = dense_kind(r, s, true, r.flag({"attention_bias"}, false));
  k.attention.out_bias = k.attention.qkv_bias;
  return with_windows(r, s, k, k, false);
}

Decoder qwen3_moe(const Reader& r) {
  const Sizes s = r.sizes(4);
  LayerKind dense = dense_kind(r, s, true, r.flag({"attention_bias", "qkv_bias"}, false));
  dense.attention.out_bias = r.flag({"attention_bias"}, false);
  LayerKind sparse = dense;
  sparse.mlp = r.moe({"num_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"});
  return with_windows(r, s, sparse, dense, false);
}

namespace {

// Gated delta net layers, with every full_attention_interval-th layer full attention with an output gate.
Decoder delta_net_decoder(const Reader& r, bool fused) {
  const bool experts = r.text().has({"num_experts"}) && r.count_or({"num_experts"}, 0, kMaxExperts) > 0;
  Sizes s = r.sizes(experts ? 4 : 0);
  LayerKind full = dense_kind(r, s, true, r.flag({"attention_bias"}, false));
  full.attention.output_gate = r.flag({"attn_output_gate"}, true);
  LayerKind linear = full;
  linear.attention = gated_delta_net(r);
  LayerKind full_dense = full;
  LayerKind linear_dense = linear;
  if (experts) {
    full.mlp = r.moe({"num_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"});
    full.mlp.shared_ffn = r.count_or({"shared_expert_intermediate_size"}, 0, kMaxVocab);
    full.mlp.shared_gate = full.mlp.shared_ffn > 0;
    linear.mlp = full.mlp;
  }
  const int64_t interval = r.size_or({"full_attention_interval"}, 4, kMaxLayers);
  const int64_t step = r.size_or({"decoder_sparse_step"}, 1, kMaxLayers);
  const auto only_dense = r.text().integers({"mlp_only_layers"}, {0, kMaxLayers}).value_or(std::vector<int64_t>());
  std::vector<bool> dense(static_cast<size_t>(s.layers), false);
  for (int64_t i : only_dense) {
    if (i < s.layers) dense[static_cast<size_t>(i)] = true;
  }
  Decoder d = r.decoder(s);
  d.layer = [=, kinds = r.attention_kinds(s.layers, [interval](int64_t i) {
    return (i + 1) % interval == 0 ? AttentionKind::full : AttentionKind::linear;
  })](int64_t i) {
    const bool plain = dense[static_cast<size_t>(i)] || (i + 1) % step != 0;
    const bool is_linear = kinds[static_cast<size_t>(i)] == AttentionKind::linear;
    return Layer{is_linear ? (plain ? linear_dense : linear) : (plain ? full_dense : full), 0};
  };
  d.mixer = [hidden = s.hidden, fused](TensorList& t, const Layer& layer, const std::string& prefix) {
    if (layer.kind.attention.kind != AttentionKind::linear) return false;
    gated_delta_net_tensors(t, dotted(prefix, "linear_attn"), layer.kind.attention, hidden, fused);
    return true;
  };
  d.style.shared = "shared_expert";
  if (!fused) {
    d.style.stacked_gate_up = "experts.gate_up_proj";
    d.style.stacked_down = "experts.down_proj";
  }
  d.mtp.count = r.count_or({"mtp_num_hidden_layers", "num_nextn_predict_layers"}, 0, kMaxLayers);
  d.mtp.numbered = false;
  d.mtp.layer = {full, 0};
  return d;
}

}  // namespace

Decoder qwen3_next(const Reader& r) { return delta_net_decoder(r, true); }
Decoder qwen35(const Reader& r) { return delta_net_decoder(r, false); }

}  // namespace vram::arch
