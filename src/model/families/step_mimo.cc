// MiMo-V2 and Step: experts with windows of other widths, low-rank queries and gates of their own.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/checked.h"
#include "model/families/families.h"

namespace vram::arch {

namespace {

using QkNorm = Attention::QkNorm;

Decoder by_layer(const Reader& r, const Sizes& s, std::vector<Layer> layers) {
  Decoder d = r.decoder(s, false);
  d.layer = [layers = std::move(layers)](int64_t i) { return layers[static_cast<size_t>(i)]; };
  return d;
}

}  // namespace

Decoder mimo_v2(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind full;
  full.attention = r.attention(s);
  full.attention.value_head_dim = r.size_or({"v_head_dim"}, s.head_dim);
  full.attention.qkv_bias = r.flag({"attention_bias"}, false);
  full.attention.sinks = r.flag({"add_full_attention_sink_bias"}, false);
  full.mlp = r.gated(s);
  r.dropouts(full);
  LayerKind sliding = full;
  Attention& a = sliding.attention;
  a.kind = AttentionKind::sliding;
  a.window = r.size_or({"sliding_window", "sliding_window_size"}, 128, kMaxPositions);
  a.heads = r.size_or({"swa_num_attention_heads"}, s.heads);
  a.kv_heads = r.size_or({"swa_num_key_value_heads"}, s.kv_heads);
  if (a.heads % a.kv_heads != 0) {
    r.text().refuse("swa_num_key_value_heads", fmt::format("does not divide the {} window heads", a.heads));
  }
  a.head_dim = r.size_or({"swa_head_dim"}, s.head_dim);
  a.value_head_dim = r.size_or({"swa_v_head_dim"}, full.attention.value_head_dim);
  a.sinks = r.flag({"add_swa_attention_sink_bias"}, true);
  Mlp experts = r.moe({"n_routed_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"});
  experts.shared_ffn = checked_mul(r.count_or({"n_shared_experts"}, 0, kMaxExperts), experts.expert_ffn);
  const auto pattern = r.layer_numbers({"hybrid_layer_pattern"}, s.layers, {0, 1});
  const auto freq = r.layer_numbers({"moe_layer_freq"}, s.layers, {0, 1});
  if (!pattern) r.assume("model.assume.hybrid_pattern");
  std::vector<Layer> layers;
  for (int64_t i = 0; i < s.layers; ++i) {
    const bool slides = pattern ? (*pattern)[static_cast<size_t>(i)] == 1 : i % 6 != 0;
    Layer layer{slides ? sliding : full, 0};
    if (freq ? (*freq)[static_cast<size_t>(i)] != 0 : i > 0) layer.kind.mlp = experts;
    layers.push_back(layer);
  }
  Decoder d = by_layer(r, s, std::move(layers));
  d.style.correction_bias = "gate.e_score_correction_bias";
  d.style.sinks = "attention_sink_bias";
  return d;
}

namespace {

// Layers with experts: all but the first where the list "1,2,3,..." is absent.
std::vector<bool> step_expert_layers(const Reader& r, int64_t layers) {
  std::vector<bool> sparse(static_cast<size_t>(layers), false);
  const Document* list = r.text().find({"moe_layers_enum"});
  if (!list) {
    for (int64_t i = r.count_or({"first_k_dense_replace"}, 1, kMaxLayers); i < layers; ++i)
      sparse[static_cast<size_t>(i)] = true;
    return sparse;
  }
  const auto set = [&](int64_t i) {
    if (i >= 0 && i < layers) sparse[static_cast<size_t>(i)] = true;
  };
  if (list->is_array()) {
    const auto numbers = r.text().integers({"moe_layers_enum"}, {0, kMaxLayers});
    for (int64_t i : *numbers) set(i);
    return sparse;
  }
  const std::string text = r.word({"moe_layers_enum"}, "");
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, comma - at);
    char* end = nullptr;
    const long value = std::strtol(item.c_str(), &end, 10);
    if (end == item.c_str() || value < 0 || value > kMaxLayers) {
      r.text().refuse("moe_layers_enum", "holds no layer number", "numbers with commas between");
    }
    set(value);
    at = comma + 1;
  }
  return sparse;
}

}  // namespace

Decoder step3(const Reader& r) {
  // Multi-matrix factorization attention: a low-rank query and one KV head.
  Sizes s;
  s.hidden = r.hidden();
  s.layers = r.layers();
  s.heads = r.heads();
  s.kv_heads = r.size_or({"num_key_value_heads", "num_attention_groups"}, 1);
  s.head_dim = r.size({"head_dim"});
  s.ffn = r.ffn();
  s.vocab = r.vocab();
  s.positions = r.positions();
  LayerKind dense;
  dense.attention = r.attention(s);
  dense.attention.q_lora_rank = r.size({"share_q_dim"});
  dense.mlp = r.gated(s);
  r.dropouts(dense);
  LayerKind sparse = dense;
  sparse.mlp = r.moe({"moe_num_experts"}, {"moe_top_k"}, {"moe_intermediate_size"});
  sparse.mlp.shared_ffn = r.count_or({"share_expert_dim"}, 0, kMaxVocab);
  const auto where = step_expert_layers(r, s.layers);
  Decoder d = r.decoder(s);
  d.layer = [=](int64_t i) { return Layer{where[static_cast<size_t>(i)] ? sparse : dense, 0}; };
  d.style.moe = "moe";
  d.style.experts = "";
  d.mixer = [hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    const Attention& a = layer.kind.attention;
    const std::string m = dotted(prefix, "self_attn");
    t.linear(m, "q_proj", a.q_lora_rank, hidden, Role::attention_other, Shard::replicated);
    t.linear(m, "k_proj", checked_mul(a.kv_heads, a.head_dim), hidden, Role::attention_k, Shard::kv_column);
    t.linear(m, "v_proj", checked_mul(a.kv_heads, a.head_dim), hidden, Role::attention_v, Shard::kv_column);
    t.norm(m, "inter_norm", a.q_lora_rank, NormKind::rmsnorm, false);
    t.linear(m, "wq", checked_mul(a.heads, a.head_dim), a.q_lora_rank, Role::attention_q, Shard::column);
    t.linear(m, "o_proj", hidden, checked_mul(a.heads, a.head_dim), Role::attention_out, Shard::row);
    return true;
  };
  d.mlp = [hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    const Mlp& m = layer.kind.mlp;
    if (m.kind != MlpKind::moe) return false;
    const std::string moe = dotted(prefix, "moe");
    t.linear(moe, "gate", m.experts, hidden, Role::router, Shard::replicated);
    const auto stacked = [&](const char* leaf, int64_t out, int64_t in, Role role, Shard shard) {
      t.add(fmt::format("{}.{}.weight", moe, leaf), moe, {m.experts, out, in}, role, shard).linear = true;
    };
    stacked("gate_proj", m.expert_ffn, hidden, Role::expert_gate, Shard::expert_column);
    stacked("up_proj", m.expert_ffn, hidden, Role::expert_up, Shard::expert_column);
    stacked("down_proj", hidden, m.expert_ffn, Role::expert_down, Shard::expert_row);
    const std::string shared = dotted(prefix, "share_expert");
    t.linear(shared, "gate_proj", m.shared_ffn, hidden, Role::shared_expert, Shard::column);
    t.linear(shared, "up_proj", m.shared_ffn, hidden, Role::shared_expert, Shard::column);
    t.linear(shared, "down_proj", hidden, m.shared_ffn, Role::shared_expert, Shard::row);
    return true;
  };
  return d;
}

Decoder step35(const Reader& r) {
  Sizes s;
  s.hidden = r.hidden();
  s.layers = r.layers();
  s.heads = r.heads();
  s.kv_heads = r.size_or({"num_key_value_heads", "num_attention_groups"}, s.heads);
  if (s.heads % s.kv_heads != 0)
    r.text().refuse("num_attention_groups", fmt::format("does not divide the {} heads", s.heads));
  s.head_dim = r.head_dim(s.hidden, s.heads);
  s.ffn = r.ffn();
  s.vocab = r.vocab();
  s.positions = r.positions();
  LayerKind full;
  full.attention = r.attention(s);
  full.attention.qk_norm = QkNorm::per_head;
  full.mlp = r.gated(s);
  r.dropouts(full);
  LayerKind sliding = full;
  Attention& a = sliding.attention;
  a.kind = AttentionKind::sliding;
  a.window = r.size_or({"sliding_window"}, 512, kMaxPositions);
  if (const auto other = r.text().object({"attention_other_setting"})) {
    a.heads = other->integer_or({"num_attention_heads"}, s.heads, {1, kMaxWidth});
    a.kv_heads = other->integer_or({"num_attention_groups", "num_key_value_heads"}, s.kv_heads, {1, kMaxWidth});
    a.head_dim = a.value_head_dim = other->integer_or({"head_dim"}, s.head_dim, {1, kMaxWidth});
    if (a.heads % a.kv_heads != 0)
      other->refuse("num_attention_groups", fmt::format("does not divide the {} heads", a.heads));
  }
  Mlp experts =
      r.moe({"moe_num_experts", "num_experts"}, {"moe_top_k", "num_experts_per_tok"}, {"moe_intermediate_size"});
  experts.shared_ffn = r.count_or({"share_expert_dim", "share_expert_dims"}, experts.expert_ffn, kMaxVocab);
  const auto where = step_expert_layers(r, s.layers);
  const bool gate = r.flag({"use_head_wise_attn_gate"}, false);
  const auto kinds =
      r.attention_kinds(s.layers, [](int64_t i) { return i % 4 == 0 ? AttentionKind::full : AttentionKind::sliding; });
  Decoder d = r.decoder(s);
  d.layer = [=](int64_t i) {
    Layer layer{kinds[static_cast<size_t>(i)] == AttentionKind::sliding ? sliding : full, 0};
    if (where[static_cast<size_t>(i)]) layer.kind.mlp = experts;
    return layer;
  };
  const bool router_bias = r.flag({"use_moe_router_bias"}, false);
  d.mlp = [hidden = s.hidden, router_bias](TensorList& t, const Layer& layer, const std::string& prefix) {
    const Mlp& m = layer.kind.mlp;
    if (m.kind != MlpKind::moe) return false;
    const std::string moe = dotted(prefix, "moe");
    t.linear(moe, "gate", m.experts, hidden, Role::router, Shard::replicated);
    if (router_bias) t.add(dotted(moe, "router_bias"), moe, {m.experts}, Role::router).dtype = Dtype::f32;
    const auto stacked = [&](const char* leaf, int64_t out, int64_t in, Role role, Shard shard) {
      t.add(fmt::format("{}.{}.weight", moe, leaf), moe, {m.experts, out, in}, role, shard).linear = true;
    };
    stacked("gate_proj", m.expert_ffn, hidden, Role::expert_gate, Shard::expert_column);
    stacked("up_proj", m.expert_ffn, hidden, Role::expert_up, Shard::expert_column);
    stacked("down_proj", hidden, m.expert_ffn, Role::expert_down, Shard::expert_row);
    const std::string shared = dotted(prefix, "share_expert");
    t.linear(shared, "gate_proj", m.shared_ffn, hidden, Role::shared_expert, Shard::column);
    t.linear(shared, "up_proj", m.shared_ffn, hidden, Role::shared_expert, Shard::column);
    t.linear(shared, "down_proj", hidden, m.shared_ffn, Role::shared_expert, Shard::row);
    return true;
  };
  if (gate) {
    d.extra = [hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
      t.linear(dotted(prefix, "self_attn"), "g_proj", layer.kind.attention.heads, hidden, Role::attention_other,
               Shard::column);
      return true;
    };
  }
  // Prediction layers look through a window and have a dense MLP.
  d.mtp.count = r.count_or({"num_nextn_predict_layers"}, 0, kMaxLayers);
  d.mtp.own_embeddings = false;
  d.mtp.layer = {sliding, 0};
  return d;
}

}  // namespace vram::arch
