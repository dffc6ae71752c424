// Gemma 1 to 4. Tied embeddings, GELU-gated MLP, from Gemma 2 on a norm before and after each half of a layer.
#include <fmt/format.h>

#include "base/checked.h"
#include "model/families/families.h"

namespace vram::arch {

namespace {

using QkNorm = Attention::QkNorm;
constexpr std::string_view kGelu = "gelu_pytorch_tanh";

const std::vector<std::string>& four_norms() {
  static const std::vector<std::string> names = {"input_layernorm", "post_attention_layernorm",
                                                 "pre_feedforward_layernorm", "post_feedforward_layernorm"};
  return names;
}

LayerKind gemma_kind(const Reader& r, const Sizes& s, int64_t norms) {
  LayerKind k;
  k.attention = r.attention(s);
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, false);
  k.mlp = r.gated(s, kGelu);
  k.norms = norms;
  r.dropouts(k);
  return k;
}

Sizes gemma_sizes(const Reader& r, int64_t default_head_dim) {
  Sizes s;
  s.hidden = r.hidden();
  s.layers = r.layers();
  s.heads = r.heads();
  s.kv_heads = r.kv_heads(s.heads);
  s.head_dim = r.size_or({"head_dim"}, default_head_dim);
  s.ffn = r.ffn();
  s.vocab = r.vocab();
  s.positions = r.positions();
  return s;
}

}  // namespace

Decoder gemma(const Reader& r) {
  const Sizes s = gemma_sizes(r, 256);
  const LayerKind k = gemma_kind(r, s, 2);
  Decoder d = r.decoder(s, true);
  d.layer = [k](int64_t) { return Layer{k, 0}; };
  return d;
}

Decoder gemma2(const Reader& r) {
  const Sizes s = gemma_sizes(r, 256);
  const LayerKind k = gemma_kind(r, s, 4);
  const int64_t window = r.size_or({"sliding_window", "sliding_window_size"}, 4096, kMaxPositions);
  Decoder d = r.decoder(s, true);
  d.style.norms = four_norms();
  d.layer = [k, window, kinds = r.attention_kinds(s.layers, [](int64_t i) {
    return i % 2 == 0 ? AttentionKind::sliding : AttentionKind::full;
  })](int64_t i) {
    Layer layer{k, 0};
    layer.kind.attention.kind = kinds[static_cast<size_t>(i)];
    if (layer.kind.attention.kind == AttentionKind::sliding) layer.kind.attention.window = window;
    return layer;
  };
  return d;
}

Decoder gemma3(const Reader& r) {
  const Sizes s = gemma_sizes(r, 256);
  LayerKind k = gemma_kind(r, s, 4);
  k.attention.qk_norm = QkNorm::per_head;
  if (!r.text().has({"sliding_window"})) r.not_given("sliding_window", "1024");
  const int64_t window = r.size_or({"sliding_window"}, 1024, kMaxPositions);
  const int64_t period = r.size_or({"sliding_window_pattern", "_sliding_window_pattern"}, 6, kMaxLayers);
  Decoder d = r.decoder(s, true);
  d.style.norms = four_norms();
  d.layer = [k, window, kinds = r.attention_kinds(s.layers, [period](int64_t i) {
    return (i + 1) % period == 0 ? AttentionKind::full : AttentionKind::sliding;
  })](int64_t i) {
    Layer layer{k, 0};
    layer.kind.attention.kind = kinds[static_cast<size_t>(i)];
    if (layer.kind.attention.kind == AttentionKind::sliding) layer.kind.attention.window = window;
    return layer;
  };
  return d;
}

namespace {

// Embeddings that each layer reads besides its input: one table of layers x width columns, and their projection.
void per_layer_tables(TensorList& t, const std::string& root, int64_t vocab, int64_t layers, int64_t width,
                      int64_t hidden) {
  const int64_t all = checked_mul(layers, width);
  t.table(root, "embed_tokens_per_layer", vocab, all, Role::embedding, Shard::replicated);
  t.linear(root, "per_layer_model_projection", all, hidden, Role::other, Shard::replicated);
  t.norm(root, "per_layer_projection_norm", width, NormKind::rmsnorm, false);
}

void per_layer_gate(TensorList& t, const std::string& prefix, int64_t width, int64_t hidden) {
  t.linear(prefix, "per_layer_input_gate", width, hidden, Role::other, Shard::replicated);
  t.linear(prefix, "per_layer_projection", hidden, width, Role::other, Shard::replicated);
  t.norm(prefix, "post_per_layer_input_norm", hidden, NormKind::rmsnorm, false);
}

}  // namespace

Decoder gemma3n(const Reader& r) {
  // MatFormer widths may differ by layer.
  Sizes s;
  s.hidden = r.hidden();
  s.layers = r.layers();
  s.heads = r.heads();
  s.kv_heads = r.kv_heads(s.heads);
  s.head_dim = r.size_or({"head_dim"}, 256);
  s.vocab = r.vocab();
  s.positions = r.positions();
  std::vector<int64_t> widths;
  if (const Document* f = r.text().find({"intermediate_size"}); f && f->is_array()) {
    widths = *r.layer_numbers({"intermediate_size"}, s.layers, {1, kMaxVocab});
    s.ffn = widths.front();
  } else {
    s.ffn = r.ffn();
  }
  LayerKind k = gemma_kind(r, s, 4);
  k.attention.qk_norm = QkNorm::per_head;
  const int64_t window = r.size_or({"sliding_window"}, 512, kMaxPositions);
  const int64_t sharing = r.count_or({"num_kv_shared_layers"}, 15, kMaxLayers);
  const int64_t streams = r.size_or({"altup_num_inputs"}, 4, 1000);
  const int64_t laurel = r.size_or({"laurel_rank"}, 64);
  const int64_t width = r.size_or({"hidden_size_per_layer_input"}, 256);
  const int64_t rows = r.size_or({"vocab_size_per_layer_input"}, 262144, kMaxVocab);
  Decoder d = r.decoder(s, true);
  d.style.norms = four_norms();
  d.layer = [=, kinds = r.attention_kinds(s.layers, [](int64_t i) {
    return (i + 1) % 5 == 0 ? AttentionKind::full : AttentionKind::sliding;
  })](int64_t i) {
    Layer layer{k, 0};
    layer.kind.attention.kind = kinds[static_cast<size_t>(i)];
    if (layer.kind.attention.kind == AttentionKind::sliding) layer.kind.attention.window = window;
    layer.kind.attention.shares_kv = sharing > 0 && i >= s.layers - sharing;
    if (!widths.empty()) layer.kind.mlp.ffn = widths[static_cast<size_t>(i)];
    return layer;
  };
  d.extra = [=, hidden = s.hidden](TensorList& t, const Layer&, const std::string& prefix) {
    const std::string altup = dotted(prefix, "altup");
    t.add(dotted(altup, "correct_output_scale"), altup, {hidden}, Role::other);
    t.linear(altup, "correction_coefs", streams, streams, Role::other, Shard::replicated);
    t.linear(altup, "prediction_coefs", checked_mul(streams, streams), streams, Role::other, Shard::replicated);
    t.linear(altup, "modality_router", streams, hidden, Role::router, Shard::replicated);
    t.norm(altup, "router_norm", hidden, NormKind::rmsnorm, false);
    const std::string low = dotted(prefix, "laurel");
    t.linear(low, "linear_left", laurel, hidden, Role::other, Shard::replicated);
    t.linear(low, "linear_right", hidden, laurel, Role::other, Shard::replicated);
    t.norm(low, "post_laurel_norm", hidden, NormKind::rmsnorm, false);
    per_layer_gate(t, prefix, width, hidden);
    return true;
  };
  d.outer = [=, hidden = s.hidden, layers = s.layers](TensorList& t, const std::string& root) {
    per_layer_tables(t, root, rows, layers, width, hidden);
    for (int64_t i = 0; i + 1 < streams; ++i) {
      t.linear(root, fmt::format("altup_projections.{}", i), hidden, hidden, Role::other, Shard::replicated);
      t.linear(root, fmt::format("altup_unembed_projections.{}", i), hidden, hidden, Role::other, Shard::replicated);
    }
  };
  return d;
}

Decoder gemma4(const Reader& r) {
  const Sizes s = gemma_sizes(r, 256);
  LayerKind k = gemma_kind(r, s, 4);
  k.attention.qk_norm = QkNorm::per_head;
  const int64_t window = r.size_or({"sliding_window"}, 1024, kMaxPositions);
  const int64_t wide_dim = r.size_or({"global_head_dim"}, 512);
  const bool k_equals_v = r.flag({"attention_k_eq_v"}, false);
  int64_t wide_kv = s.kv_heads;
  if (k_equals_v) {
    wide_kv = r.size_or({"num_global_key_value_heads"}, s.kv_heads);
    if (s.heads % wide_kv != 0) {
      r.text().refuse("num_global_key_value_heads", fmt::format("does not divide the {} attention heads", s.heads));
    }
  }
  const int64_t sharing = r.count_or({"num_kv_shared_layers"}, 0, kMaxLayers);
  const bool double_wide = r.flag({"use_double_wide_mlp"}, false);
  const int64_t width = r.count_or({"hidden_size_per_layer_input"}, 0);
  const int64_t rows = r.size_or({"vocab_size_per_layer_input"}, s.vocab, kMaxVocab);
  const bool experts = r.flag({"enable_moe_block"}, false);
  Mlp moe;
  if (experts) {
    moe = r.moe({"num_experts"}, {"top_k_experts"}, {"moe_intermediate_size", "expert_intermediate_size"}, kGelu);
    moe.dense_ffn = s.ffn;
    k.norms = 7;
  }
  Decoder d = r.decoder(s, true);
  d.style.norms = four_norms();
  d.style.separate_kv_of_sharing = false;
  d.style.stacked_gate_up = "gate_up_proj";
  d.style.stacked_down = "down_proj";
  d.layer = [=, kinds = r.attention_kinds(s.layers, [](int64_t i) {
    return (i + 1) % 6 == 0 ? AttentionKind::full : AttentionKind::sliding;
  })](int64_t i) {
    Layer layer{k, 0};
    Attention& a = layer.kind.attention;
    a.kind = kinds[static_cast<size_t>(i)];
    if (a.kind == AttentionKind::sliding) {
      a.window = window;
    } else {
      a.head_dim = a.value_head_dim = wide_dim;
      a.kv_heads = wide_kv;
      a.k_equals_v = k_equals_v;
    }
    a.shares_kv = sharing > 0 && i >= s.layers - sharing;
    if (double_wide && a.shares_kv) layer.kind.mlp.ffn = checked_mul(2, s.ffn);
    if (experts) {
      const int64_t dense = layer.kind.mlp.ffn;
      layer.kind.mlp = moe;
      layer.kind.mlp.dense_ffn = dense;
    }
    return layer;
  };
  d.mlp = [style = d.style, hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    const Mlp& m = layer.kind.mlp;
    if (m.kind != MlpKind::moe) return false;
    Mlp dense = m;
    dense.kind = MlpKind::gated;
    dense.ffn = m.dense_ffn;
    mlp_tensors(t, dotted(prefix, "mlp"), dense, style, hidden);
    const std::string router = dotted(prefix, "router");
    t.linear(router, "proj", m.experts, hidden, Role::router, Shard::replicated);
    t.add(dotted(router, "scale"), router, {hidden}, Role::router);
    t.add(dotted(router, "per_expert_scale"), router, {m.experts}, Role::router);
    expert_tensors(t, dotted(prefix, "experts"), m, style, hidden);
    for (const char* norm :
         {"post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2"}) {
      t.norm(prefix, norm, hidden, NormKind::rmsnorm, false);
    }
    return true;
  };
  d.extra = [width, hidden = s.hidden](TensorList& t, const Layer&, const std::string& prefix) {
    if (width > 0) per_layer_gate(t, prefix, width, hidden);
    t.add(dotted(prefix, "layer_scalar"), prefix, {1}, Role::other).learned = false;
    return true;
  };
  if (width > 0) {
    d.outer = [=, hidden = s.hidden, layers = s.layers](TensorList& t, const std::string& root) {
      per_layer_tables(t, root, rows, layers, width, hidden);
    };
  }
  return d;
}

}  // namespace vram::arch
