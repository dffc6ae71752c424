// Mixtures of experts without latent attention.
#include <fmt/format.h>

#include "base/checked.h"
#include "model/families/families.h"
#include "model/recurrent.h"

namespace vram::arch {

namespace {

using QkNorm = Attention::QkNorm;

void mixtral_names(Style& s) {
  s.moe = "block_sparse_moe";
  s.expert_gate = "w1";
  s.expert_up = "w3";
  s.expert_down = "w2";
}

Decoder uniform(const Reader& r, const Sizes& s, const LayerKind& k, bool tied = false) {
  Decoder d = r.decoder(s, tied);
  d.norm = k.norm;
  d.layer = [k](int64_t) { return Layer{k, 0}; };
  return d;
}

Decoder by_layer(const Reader& r, const Sizes& s, std::vector<Layer> layers, bool tied = false) {
  Decoder d = r.decoder(s, tied);
  d.layer = [layers = std::move(layers)](int64_t i) { return layers[static_cast<size_t>(i)]; };
  return d;
}

}  // namespace

Decoder mixtral(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k;
  k.attention = r.attention(s);
  k.mlp = r.moe({"num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  r.dropouts(k);
  const int64_t window = r.size_or({"sliding_window"}, 0, kMaxPositions);
  if (window > 0) {
    k.attention.kind = AttentionKind::sliding;
    k.attention.window = window;
  }
  Decoder d = uniform(r, s, k);
  mixtral_names(d.style);
  return d;
}

Decoder dbrx(const Reader& r) {
  Sizes s;
  s.hidden = r.hidden();
  s.layers = r.layers();
  s.heads = r.heads();
  s.vocab = r.vocab();
  s.positions = r.positions();
  s.kv_heads = s.heads;
  if (const auto attention = r.text().object({"attn_config"})) {
    s.kv_heads = attention->integer_or({"kv_n_heads"}, s.heads, {1, kMaxWidth});
    if (s.heads % s.kv_heads != 0)
      attention->refuse("kv_n_heads", fmt::format("does not divide the {} heads", s.heads));
  }
  s.head_dim = r.head_dim(s.hidden, s.heads);
  const auto ffn = r.text().object({"ffn_config"});
  if (!ffn) r.text().refuse("ffn_config", "is missing", "an object with ffn_hidden_size and moe_num_experts");
  LayerKind k;
  k.attention = r.attention(s);
  k.norm = NormKind::layernorm;
  k.mlp.kind = MlpKind::moe;
  k.mlp.activation = "silu";
  k.mlp.experts = ffn->required_integer({"moe_num_experts"}, {1, kMaxExperts});
  k.mlp.experts_per_token = ffn->required_integer({"moe_top_k"}, {1, k.mlp.experts});
  k.mlp.expert_ffn = ffn->required_integer({"ffn_hidden_size"}, {1, kMaxVocab});
  r.dropouts(k);
  Decoder d = uniform(r, s, k);
  d.style.root = "transformer";
  d.style.layers = "blocks";
  d.style.embedding = "wte";
  d.style.final_norm = "norm_f";
  d.style.attention = "norm_attn_norm.attn";
  d.style.fused_qkv = "Wqkv";
  d.style.o = "out_proj";
  d.style.norms = {"norm_attn_norm.norm_1", "norm_attn_norm.norm_2"};
  d.mlp = [hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    const Mlp& m = layer.kind.mlp;
    const std::string ffn_name = dotted(prefix, "ffn");
    t.linear(dotted(ffn_name, "router"), "layer", m.experts, hidden, Role::router, Shard::replicated);
    const std::string experts = dotted(ffn_name, "experts.mlp");
    const int64_t rows = checked_mul(m.experts, m.expert_ffn);
    t.add(dotted(experts, "w1"), experts, {rows, hidden}, Role::expert_gate, Shard::expert_column).linear = true;
    t.add(dotted(experts, "v1"), experts, {rows, hidden}, Role::expert_up, Shard::expert_column).linear = true;
    t.add(dotted(experts, "w2"), experts, {rows, hidden}, Role::expert_down, Shard::expert_row).linear = true;
    return true;
  };
  return d;
}

Decoder gpt_oss(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k;
  k.attention = r.attention(s);
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, true);
  k.attention.sinks = true;
  k.mlp =
      r.moe({"num_local_experts", "num_experts"}, {"num_experts_per_tok", "experts_per_token"}, {"intermediate_size"});
  k.mlp.expert_bias = true;
  r.dropouts(k);
  const int64_t window = r.size_or({"sliding_window"}, 128, kMaxPositions);
  Decoder d = r.decoder(s);
  d.style.router = "router";
  d.style.router_bias = true;
  d.style.stacked_gate_up = "experts.gate_up_proj";
  d.style.stacked_down = "experts.down_proj";
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

Decoder llama4(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind dense;
  dense.attention = r.attention(s);
  dense.attention.qkv_bias = dense.attention.out_bias = r.flag({"attention_bias"}, false);
  dense.mlp = r.gated(s);
  dense.mlp.ffn = r.size_or({"intermediate_size_mlp"}, checked_mul(2, s.ffn), kMaxVocab);
  r.dropouts(dense);
  Mlp experts = r.moe({"num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  experts.shared_ffn = s.ffn;
  std::vector<bool> sparse(static_cast<size_t>(s.layers), false);
  if (const auto list = r.text().integers({"moe_layers"}, {0, kMaxLayers})) {
    for (int64_t i : *list) {
      if (i < s.layers) sparse[static_cast<size_t>(i)] = true;
    }
  } else {
    const int64_t step = r.size_or({"interleave_moe_layer_step"}, 1, kMaxLayers);
    for (int64_t i = step - 1; i < s.layers; i += step) sparse[static_cast<size_t>(i)] = true;
  }
  // Layers with rotary positions see a chunk, the others (every fourth) everything.
  const int64_t chunk = r.size_or({"attention_chunk_size"}, 8192, kMaxPositions);
  const auto rotary = r.layer_numbers({"no_rope_layers"}, 0, {0, 1});
  const int64_t interval = r.size_or({"no_rope_layer_interval"}, 4, kMaxLayers);
  const auto kinds = r.attention_kinds(s.layers, [&](int64_t i) {
    const bool has_rotary = rotary && i < static_cast<int64_t>(rotary->size()) ? (*rotary)[static_cast<size_t>(i)] != 0
                                                                               : (i + 1) % interval != 0;
    return has_rotary ? AttentionKind::chunked : AttentionKind::full;
  });
  Decoder d = r.decoder(s);
  d.style.mlp = d.style.moe = "feed_forward";
  d.style.router = "router";
  d.style.stacked_gate_up = "experts.gate_up_proj";
  d.style.stacked_down = "experts.down_proj";
  d.style.stacked_in_first = true;
  d.style.shared = "shared_expert";
  d.layer = [=](int64_t i) {
    Layer layer{dense, 0};
    if (sparse[static_cast<size_t>(i)]) layer.kind.mlp = experts;
    layer.kind.attention.kind = kinds[static_cast<size_t>(i)];
    if (layer.kind.attention.kind != AttentionKind::full) layer.kind.attention.window = chunk;
    return layer;
  };
  return d;
}

Decoder granitemoe(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k;
  k.attention = r.attention(s);
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, false);
  k.mlp = r.moe({"num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  k.mlp.shared_ffn = r.count_or({"shared_intermediate_size"}, 0, kMaxVocab);
  r.dropouts(k);
  Decoder d = uniform(r, s, k, true);
  d.mlp = [style = d.style, hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    const Mlp& m = layer.kind.mlp;
    const std::string moe = dotted(prefix, "block_sparse_moe");
    t.linear(dotted(moe, "router"), "layer", m.experts, hidden, Role::router, Shard::replicated);
    Style names = style;
    names.stacked_gate_up = "input_linear.weight";
    names.stacked_down = "output_linear.weight";
    expert_tensors(t, moe, m, names, hidden);
    if (m.shared_ffn > 0) {
      const std::string shared = dotted(prefix, "shared_mlp");
      t.linear(shared, "input_linear", checked_mul(2, m.shared_ffn), hidden, Role::shared_expert, Shard::column);
      t.linear(shared, "output_linear", hidden, m.shared_ffn, Role::shared_expert, Shard::row);
    }
    return true;
  };
  return d;
}

Decoder olmoe(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k;
  k.attention = r.attention(s);
  k.attention.qk_norm = QkNorm::full_width;
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, false);
  k.mlp = r.moe({"num_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  r.dropouts(k);
  return uniform(r, s, k);
}

Decoder minimax_text_01(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind full;
  full.attention = r.attention(s);
  full.mlp = r.moe({"num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  full.mlp.shared_ffn = r.count_or({"shared_intermediate_size"}, 0, kMaxVocab);
  r.dropouts(full);
  LayerKind linear = full;
  linear.attention = Attention{};
  Attention& a = linear.attention;
  a.kind = AttentionKind::linear;
  a.heads = a.kv_heads = s.heads;
  a.head_dim = a.value_head_dim = s.head_dim;
  a.inner = checked_mul(s.heads, s.head_dim);
  a.state_dim = s.head_dim;
  a.state_elements = checked_mul(a.inner, s.head_dim);
  const auto types = r.layer_numbers({"attn_type_list"}, s.layers, {0, 1});
  const auto kinds = r.attention_kinds(s.layers, [&](int64_t i) {
    const bool is_full = types ? (*types)[static_cast<size_t>(i)] == 1 : (i + 1) % 8 == 0;
    return is_full ? AttentionKind::full : AttentionKind::linear;
  });
  Decoder d = r.decoder(s);
  mixtral_names(d.style);
  d.style.shared = "shared_mlp";
  d.layer = [=](int64_t i) { return Layer{kinds[static_cast<size_t>(i)] == AttentionKind::linear ? linear : full, 0}; };
  d.mixer = [hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    if (layer.kind.attention.kind != AttentionKind::linear) return false;
    lightning_tensors(t, dotted(prefix, "self_attn"), layer.kind.attention, hidden);
    return true;
  };
  return d;
}

Decoder minimax_m2(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k;
  k.attention = r.attention(s);
  if (r.flag({"use_qk_norm"}, true)) {
    k.attention.qk_norm = r.word({"qk_norm_type"}, "per_layer") == "per_head" ? QkNorm::per_head : QkNorm::full_width;
  }
  k.mlp = r.moe({"num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  k.mlp.shared_ffn = r.count_or({"shared_intermediate_size"}, 0, kMaxVocab);
  r.dropouts(k);
  Decoder d = uniform(r, s, k);
  mixtral_names(d.style);
  if (r.flag({"use_routing_bias"}, true)) d.style.correction_bias = "e_score_correction_bias";
  // The config names MTP modules, the published checkpoints hold none.
  return d;
}

Decoder minimax_m3(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind dense;
  dense.attention = r.attention(s);
  if (r.flag({"use_qk_norm"}, true)) {
    dense.attention.qk_norm =
        r.word({"qk_norm_type"}, "per_head") == "per_head" ? QkNorm::per_head : QkNorm::full_width;
  }
  dense.attention.output_gate = r.flag({"attention_output_gate"}, false);
  dense.mlp = r.gated(s);
  dense.mlp.ffn = r.size_or({"dense_intermediate_size"}, s.ffn, kMaxVocab);
  r.dropouts(dense);
  Mlp experts = r.moe({"num_local_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size", "intermediate_size"});
  experts.shared_ffn = checked_mul(r.count_or({"n_shared_experts"}, 0, kMaxExperts),
                                   r.size_or({"shared_intermediate_size"}, experts.expert_ffn, kMaxVocab));
  std::vector<Layer> layers;
  const auto freq = r.layer_numbers({"moe_layer_freq"}, s.layers, {0, 1});
  const int64_t first = r.count_or({"first_k_dense_replace"}, 0, kMaxLayers);
  // Blocks of keys are chosen by a small index with one key head, on the layers that sparse_attention_freq marks.
  int64_t index_heads = 0, index_dim = 0, topk = 0;
  std::vector<int64_t> indexed;
  if (const auto sparse = r.text().object({"sparse_attention_config"});
      sparse && sparse->boolean_or({"use_sparse_attention"}, true)) {
    index_heads = sparse->required_integer({"sparse_num_index_heads"}, {1, kMaxWidth});
    index_dim = sparse->required_integer({"sparse_index_dim"}, {1, kMaxWidth});
    topk = checked_mul(sparse->integer_or({"sparse_topk_blocks"}, 16, {1, kMaxWidth}),
                       sparse->integer_or({"sparse_block_size"}, 128, {1, kMaxWidth}));
    indexed = sparse->integers({"sparse_attention_freq"}, {0, 1}).value_or(std::vector<int64_t>());
  }
  for (int64_t i = 0; i < s.layers; ++i) {
    const auto at = static_cast<size_t>(i);
    Layer layer{dense, 0};
    if (freq ? (*freq)[at] != 0 : i >= first) layer.kind.mlp = experts;
    if (index_heads > 0 && (at >= indexed.size() || indexed[at] != 0)) {
      layer.kind.attention.index_heads = index_heads;
      layer.kind.attention.index_head_dim = index_dim;
      layer.kind.attention.index_topk = topk;
    }
    layers.push_back(layer);
  }
  Decoder d = by_layer(r, s, std::move(layers));
  mixtral_names(d.style);
  if (r.flag({"use_routing_bias"}, true)) d.style.correction_bias = "e_score_correction_bias";
  d.mixer = [style = d.style, hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    Attention plain = layer.kind.attention;
    plain.index_heads = 0;
    attention_tensors(t, prefix, plain, style, hidden);
    const Attention& a = layer.kind.attention;
    if (a.index_heads == 0) return true;
    const std::string m = dotted(prefix, "self_attn");
    t.linear(m, "index_q_proj", checked_mul(a.index_heads, a.index_head_dim), hidden, Role::attention_other,
             Shard::kv_column);
    t.linear(m, "index_k_proj", a.index_head_dim, hidden, Role::attention_other, Shard::replicated);
    t.norm(m, "index_q_norm", a.index_head_dim, NormKind::rmsnorm, false);
    t.norm(m, "index_k_norm", a.index_head_dim, NormKind::rmsnorm, false);
    return true;
  };
  if (r.count_or({"num_mtp_modules", "num_nextn_predict_layers"}, 0, kMaxLayers) > 0) {
    r.assume("model.assume.mtp_uncounted");
  }
  return d;
}

Decoder ernie45_moe(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind dense;
  dense.attention = r.attention(s);
  dense.mlp = r.gated(s);
  dense.attention.qkv_bias = dense.attention.out_bias = dense.mlp.bias = r.flag({"use_bias"}, false);
  r.dropouts(dense);
  LayerKind sparse = dense;
  sparse.mlp = r.moe({"moe_num_experts"}, {"moe_k"}, {"moe_intermediate_size"});
  sparse.mlp.bias = dense.mlp.bias;
  sparse.mlp.expert_bias = dense.mlp.bias;
  sparse.mlp.shared_ffn = checked_mul(r.count_or({"moe_num_shared_experts"}, 0, kMaxExperts), sparse.mlp.expert_ffn);
  const int64_t first = r.count_or({"moe_layer_start_index"}, 1, kMaxLayers);
  const int64_t interval = r.size_or({"moe_layer_interval"}, 1, kMaxLayers);
  int64_t last = s.layers - 1;
  if (const auto end = r.text().integer({"moe_layer_end_index"}, {-1, kMaxLayers}); end && *end >= 0) last = *end;
  Decoder d = r.decoder(s, true);
  d.layer = [=](int64_t i) {
    const bool is_sparse = i >= first && i <= last && (i + 1) % interval == 0;
    return Layer{is_sparse ? sparse : dense, 0};
  };
  d.style.correction_bias = "moe_statics.e_score_correction_bias";
  return d;
}

namespace {

// Hunyuan writes a number, or one number a layer.
std::vector<int64_t> number_or_list(const Reader& r, std::string_view name, int64_t layers, int64_t fallback) {
  if (const Document* f = r.text().find({name}); f && f->is_array()) return *r.layer_numbers({name}, layers);
  return std::vector<int64_t>(static_cast<size_t>(layers), r.count_or({name}, fallback, kMaxVocab));
}

}  // namespace

Decoder hunyuan_moe(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k;
  k.attention = r.attention(s);
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, false);
  if (r.flag({"use_qk_norm"}, true)) k.attention.qk_norm = QkNorm::per_head;
  k.mlp = r.gated(s);
  r.dropouts(k);
  const auto experts = number_or_list(r, "num_experts", s.layers, 1);
  const auto topk = number_or_list(r, "moe_topk", s.layers, 1);
  const auto shared = number_or_list(r, "num_shared_expert", s.layers, 1);
  const auto widths = number_or_list(r, "moe_intermediate_size", s.layers, s.ffn);
  const bool has_shared = r.flag({"use_mixed_mlp_moe"}, true);
  std::vector<Layer> layers;
  for (size_t i = 0; i < experts.size() && i < static_cast<size_t>(s.layers); ++i) {
    Layer layer{k, 0};
    if (experts[i] > 1) {
      Mlp& m = layer.kind.mlp;
      m.kind = MlpKind::moe;
      m.experts = experts[i];
      m.experts_per_token = topk[i];
      if (m.experts_per_token < 1 || m.experts_per_token > m.experts) {
        r.text().refuse("moe_topk", fmt::format("does not choose from the {} experts of layer {}", m.experts, i));
      }
      m.expert_ffn = widths[i];
      m.shared_ffn = has_shared ? checked_mul(shared[i], widths[i]) : 0;
    }
    layers.push_back(layer);
  }
  Decoder d = by_layer(r, s, std::move(layers), true);
  d.style.q_norm = "query_layernorm";
  d.style.k_norm = "key_layernorm";
  d.style.router = "gate.wg";
  d.style.shared = "shared_mlp";
  return d;
}

}  // namespace vram::arch
