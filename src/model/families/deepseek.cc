// DeepSeek and the models built on its latent attention (Kimi, GLM-5, GLM-4.7-Flash, MiniCPM3).
#include <fmt/format.h>

#include "base/checked.h"
#include "model/families/families.h"
#include "model/recurrent.h"

namespace vram::arch {

namespace {

// Latent attention: per token one latent of kv_lora_rank and one rotary key are cached, whatever num_key_value_heads
// says.
Attention latent_attention(const Reader& r, int64_t heads) {
  Attention a;
  a.kind = AttentionKind::mla;
  a.heads = a.kv_heads = heads;
  a.q_lora_rank = r.count_or({"q_lora_rank"}, 0);
  a.kv_lora_rank = r.size({"kv_lora_rank"});
  a.rope_head_dim = r.size({"qk_rope_head_dim"});
  a.nope_head_dim = r.size({"qk_nope_head_dim"});
  a.value_head_dim = r.size({"v_head_dim"});
  a.head_dim = a.nope_head_dim + a.rope_head_dim;
  a.qkv_bias = a.out_bias = r.flag({"attention_bias"}, false);
  return a;
}

Sizes latent_sizes(const Reader& r) {
  Sizes s;
  s.hidden = r.hidden();
  s.layers = r.layers();
  s.heads = r.heads();
  s.ffn = r.ffn();
  s.vocab = r.vocab();
  s.positions = r.positions();
  return s;
}

Mlp deepseek_experts(const Reader& r) {
  Mlp m = r.moe({"n_routed_experts", "num_experts"}, {"num_experts_per_tok", "num_experts_per_token"},
                {"moe_intermediate_size"});
  m.shared_ffn = checked_mul(r.count_or({"n_shared_experts", "num_shared_experts"}, 0, kMaxExperts), m.expert_ffn);
  return m;
}

// Which layers have experts: from first_k_dense_replace on every moe_layer_freq-th, or a list of 0 and 1.
std::vector<bool> expert_layers(const Reader& r, int64_t layers) {
  std::vector<bool> sparse(static_cast<size_t>(layers), false);
  const bool any = r.count_or({"n_routed_experts", "num_experts"}, 0, kMaxExperts) > 0;
  if (!any) return sparse;
  if (const auto words = r.layer_words({"mlp_layer_types"}, layers)) {
    for (size_t i = 0; i < sparse.size(); ++i) sparse[i] = (*words)[i] != "dense";
    return sparse;
  }
  if (const Document* f = r.text().find({"moe_layer_freq"}); f && f->is_array()) {
    const auto list = *r.layer_numbers({"moe_layer_freq"}, layers, {0, 1});
    for (size_t i = 0; i < sparse.size(); ++i) sparse[i] = list[i] != 0;
    return sparse;
  }
  const int64_t first = r.count_or({"first_k_dense_replace"}, 0, kMaxLayers);
  const int64_t step = r.size_or({"moe_layer_freq"}, 1, kMaxLayers);
  for (int64_t i = first; i < layers; ++i) sparse[static_cast<size_t>(i)] = i % step == 0;
  return sparse;
}

}  // namespace

Decoder deepseek(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind dense;
  dense.attention = r.attention(s);
  dense.attention.qkv_bias = dense.attention.out_bias = r.flag({"attention_bias"}, false);
  dense.mlp = r.gated(s);
  r.dropouts(dense);
  LayerKind sparse = dense;
  const auto where = expert_layers(r, s.layers);
  if (r.count_or({"n_routed_experts"}, 0, kMaxExperts) > 0) sparse.mlp = deepseek_experts(r);
  Decoder d = r.decoder(s);
  d.layer = [=](int64_t i) { return Layer{where[static_cast<size_t>(i)] ? sparse : dense, 0}; };
  return d;
}

Decoder deepseek_v2(const Reader& r) {
  const Sizes s = latent_sizes(r);
  LayerKind dense;
  dense.attention = latent_attention(r, s.heads);
  dense.mlp = r.gated(s);
  r.dropouts(dense);
  const auto where = expert_layers(r, s.layers);
  LayerKind sparse = dense;
  if (r.count_or({"n_routed_experts"}, 0, kMaxExperts) > 0) sparse.mlp = deepseek_experts(r);
  Decoder d = r.decoder(s);
  d.layer = [=](int64_t i) { return Layer{where[static_cast<size_t>(i)] ? sparse : dense, 0}; };
  if (r.word({"topk_method"}, "") == "noaux_tc") d.style.correction_bias = "gate.e_score_correction_bias";
  return d;
}

Decoder deepseek_v3(const Reader& r) {
  // Also kimi_k2, deepseek_v32, glm4_moe_lite and glm_moe_dsa; the index of sparse attention where index_n_heads is
  // given.
  Decoder d = deepseek_v2(r);
  const std::string type = r.word({"model_type"}, "");
  d.style.correction_bias = "gate.e_score_correction_bias";
  const int64_t index_heads = r.count_or({"index_n_heads"}, 0);
  // GLM-5.2: some layers reuse the choice of an earlier one and have no index of their own.
  const auto types = r.layer_words({"indexer_types"}, d.layers);
  if (index_heads > 0) {
    const int64_t dim = r.size({"index_head_dim"});
    const int64_t topk = r.size({"index_topk"}, kMaxPositions);
    d.layer = [=, plain = d.layer](int64_t i) {
      Layer layer = plain(i);
      if (types && (*types)[static_cast<size_t>(i)] == "shared") return layer;
      layer.kind.attention.index_heads = index_heads;
      layer.kind.attention.index_head_dim = dim;
      layer.kind.attention.index_topk = topk;
      return layer;
    };
  }
  d.mtp.count = r.count_or({"num_nextn_predict_layers"}, 0, kMaxLayers);
  // DeepSeek-V3 and GLM-4.7-Flash store the MTP layer's own embedding and head; GLM-5 does not.
  d.mtp.own_embeddings = type != "glm_moe_dsa";
  if (d.mtp.count > 0) {
    d.mtp.layer = d.layer(d.layers - 1);
    if (index_heads > 0) {
      d.mtp.layer.kind.attention.index_heads = index_heads;
      d.mtp.layer.kind.attention.index_head_dim = r.size({"index_head_dim"});
      d.mtp.layer.kind.attention.index_topk = r.size({"index_topk"}, kMaxPositions);
    }
  }
  return d;
}

Decoder minicpm3(const Reader& r) {
  Decoder d = deepseek_v2(r);
  d.tied = r.flag({"tie_word_embeddings"}, true);
  return d;
}

namespace {

// DeepSeek-V4 pools keys and values of `ratio` tokens into one entry; ratio 4 overlaps windows, so it projects twice as
// wide.
void compressor_tensors(TensorList& t, const std::string& module, int64_t width, int64_t ratio, int64_t hidden) {
  const int64_t wide = checked_mul(ratio <= 4 ? 2 : 1, width);
  t.linear(module, "wkv", wide, hidden, Role::attention_other, Shard::replicated);
  t.linear(module, "wgate", wide, hidden, Role::attention_other, Shard::replicated);
  t.add(dotted(module, "ape"), module, {ratio, wide}, Role::attention_other).dtype = Dtype::f32;
  t.norm(module, "norm", width, NormKind::rmsnorm, false);
}

void hyper_connection(TensorList& t, const std::string& prefix, const char* site, int64_t streams, int64_t hidden) {
  const int64_t mix = checked_mul(streams + 2, streams);
  t.add(fmt::format("{}.hc_{}_fn", prefix, site), prefix, {mix, checked_mul(streams, hidden)}, Role::other).dtype =
      Dtype::f32;
  t.add(fmt::format("{}.hc_{}_base", prefix, site), prefix, {mix}, Role::other).dtype = Dtype::f32;
  t.add(fmt::format("{}.hc_{}_scale", prefix, site), prefix, {3}, Role::other).dtype = Dtype::f32;
}

}  // namespace

Decoder deepseek_v4(const Reader& r) {
  Sizes s;
  s.hidden = r.hidden();
  s.layers = r.layers();
  s.heads = r.heads();
  s.kv_heads = 1;
  s.head_dim = r.size({"head_dim"});
  s.vocab = r.vocab();
  s.positions = r.positions();
  LayerKind k;
  Attention& a = k.attention;
  a = r.attention(s);
  a.kind = AttentionKind::sliding;
  a.window = r.size({"sliding_window"}, kMaxPositions);
  a.shared_key_value = true;
  a.sinks = true;
  a.q_lora_rank = r.size({"q_lora_rank"});
  a.rope_head_dim = r.size_or({"qk_rope_head_dim"}, 64);
  k.mlp = deepseek_experts(r);
  r.dropouts(k);
  const int64_t groups = r.size({"o_groups"});
  const int64_t o_rank = r.size({"o_lora_rank"});
  if (s.heads % groups != 0) r.text().refuse("o_groups", fmt::format("does not divide the {} heads", s.heads));
  const int64_t index_heads = r.size({"index_n_heads"});
  const int64_t index_dim = r.size({"index_head_dim"});
  const int64_t topk = r.size({"index_topk"}, kMaxPositions);
  const int64_t streams = r.size_or({"hc_mult"}, 4, 1000);
  // The first layers route by a fixed table of token ids.
  const int64_t hashed = r.count_or({"num_hash_layers"}, 0, kMaxLayers);
  const auto ratios = r.layer_numbers({"compress_ratios"}, s.layers, {0, kMaxWidth});
  if (!ratios) r.assume("model.assume.compress_ratios");

  Decoder d = r.decoder(s);
  d.style.root = "";
  d.style.attention = "attn";
  d.style.norms = {"attn_norm", "ffn_norm"};
  d.style.embedding = "embed";
  d.style.head = "head";
  d.style.moe = "ffn";
  d.style.gate = d.style.expert_gate = "w1";
  d.style.up = d.style.expert_up = "w3";
  d.style.down = d.style.expert_down = "w2";
  constexpr int kHashed = 1;
  d.layer = [=](int64_t i) {
    Layer layer{k, i < hashed ? kHashed : 0};
    const int64_t ratio = ratios ? (*ratios)[static_cast<size_t>(i)] : 0;
    layer.kind.attention.compress_ratio = ratio;
    if (ratio > 0 && ratio <= 4) {
      layer.kind.attention.index_heads = index_heads;
      layer.kind.attention.index_head_dim = index_dim;
      layer.kind.attention.index_topk = topk;
    }
    return layer;
  };
  d.mixer = [=, hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    const Attention& at = layer.kind.attention;
    const std::string m = dotted(prefix, "attn");
    const int64_t wide = checked_mul(at.heads, at.head_dim);
    t.linear(m, "wq_a", at.q_lora_rank, hidden, Role::attention_other, Shard::replicated);
    t.norm(m, "q_norm", at.q_lora_rank, NormKind::rmsnorm, false);
    t.linear(m, "wq_b", wide, at.q_lora_rank, Role::attention_q, Shard::column);
    t.linear(m, "wkv", at.head_dim, hidden, Role::attention_k, Shard::replicated);
    t.norm(m, "kv_norm", at.head_dim, NormKind::rmsnorm, false);
    t.linear(m, "wo_a", checked_mul(groups, o_rank), wide / groups, Role::attention_out, Shard::column);
    t.linear(m, "wo_b", hidden, checked_mul(groups, o_rank), Role::attention_out, Shard::row);
    t.add(dotted(m, "attn_sink"), m, {at.heads}, Role::attention_other, Shard::column).dtype = Dtype::f32;
    if (at.compress_ratio > 0) compressor_tensors(t, dotted(m, "compressor"), at.head_dim, at.compress_ratio, hidden);
    if (at.index_heads > 0) {
      const std::string index = dotted(m, "indexer");
      t.linear(index, "wq_b", checked_mul(at.index_heads, at.index_head_dim), at.q_lora_rank, Role::attention_other,
               Shard::replicated);
      t.linear(index, "weights_proj", at.index_heads, hidden, Role::attention_other, Shard::replicated);
      compressor_tensors(t, dotted(index, "compressor"), at.index_head_dim, at.compress_ratio, hidden);
    }
    return true;
  };
  d.mlp = [style = d.style, hidden = s.hidden, vocab = s.vocab](TensorList& t, const Layer& layer,
                                                                const std::string& prefix) {
    const std::string m = dotted(prefix, "ffn");
    moe_tensors(t, m, layer.kind.mlp, style, hidden);
    if (layer.variant == kHashed) {
      Tensor& table = t.add(dotted(m, "gate.tid2eid"), m, {vocab, layer.kind.mlp.experts_per_token}, Role::router);
      table.dtype = Dtype::i64;
      table.learned = false;
    } else {
      t.add(dotted(m, "gate.bias"), m, {layer.kind.mlp.experts}, Role::router).dtype = Dtype::f32;
    }
    return true;
  };
  d.extra = [streams, hidden = s.hidden](TensorList& t, const Layer&, const std::string& prefix) {
    hyper_connection(t, prefix, "attn", streams, hidden);
    hyper_connection(t, prefix, "ffn", streams, hidden);
    return true;
  };
  d.outer = [streams, hidden = s.hidden](TensorList& t, const std::string&) {
    t.add("hc_head_fn", "", {streams, checked_mul(streams, hidden)}, Role::other).dtype = Dtype::f32;
    t.add("hc_head_base", "", {streams}, Role::other).dtype = Dtype::f32;
    t.add("hc_head_scale", "", {1}, Role::other).dtype = Dtype::f32;
  };
  d.mtp.count = r.count_or({"num_nextn_predict_layers"}, 0, kMaxLayers);
  d.mtp.layer = {k, 0};
  if (d.mtp.count > 0) r.assume("model.assume.v4_mtp");
  return d;
}

Decoder kimi_linear(const Reader& r) {
  // Kimi-Linear and the text part of Kimi-K3: delta attention layers between latent attention layers.
  const Sizes s = latent_sizes(r);
  LayerKind full;
  full.attention = latent_attention(r, s.heads);
  full.mlp = r.gated(s);
  r.dropouts(full);
  const auto linear_config = r.text().object({"linear_attn_config"});
  if (!linear_config)
    r.text().refuse("linear_attn_config", "is missing", "an object with kda_layers, num_heads and head_dim");
  LayerKind linear = full;
  linear.attention = Attention{};
  Attention& a = linear.attention;
  a.kind = AttentionKind::linear;
  a.heads = a.kv_heads = linear_config->required_integer({"num_heads"}, {1, kMaxWidth});
  a.head_dim = a.value_head_dim = linear_config->required_integer({"head_dim"}, {1, kMaxWidth});
  a.conv_kernel = linear_config->integer_or({"short_conv_kernel_size"}, 4, {1, 1000});
  a.inner = checked_mul(a.heads, a.head_dim);
  a.state_dim = a.head_dim;
  a.state_elements = checked_mul(a.inner, a.head_dim);
  a.conv_elements = checked_mul(checked_mul(3, a.conv_kernel - 1), a.inner);
  const bool full_rank = linear_config->boolean_or({"use_full_rank_gate"}, false);
  std::vector<bool> is_linear(static_cast<size_t>(s.layers), false);
  const auto list = linear_config->integers({"kda_layers"}, {1, kMaxLayers});
  if (!list) linear_config->refuse("kda_layers", "is missing", "a list of layer numbers from 1");
  for (int64_t i : *list) {
    if (i > s.layers) linear_config->refuse("kda_layers", fmt::format("names layer {} of {}", i, s.layers));
    is_linear[static_cast<size_t>(i - 1)] = true;
  }
  const auto where = expert_layers(r, s.layers);
  Mlp experts;
  const bool any_experts = r.count_or({"num_experts"}, 0, kMaxExperts) > 0;
  if (any_experts) {
    experts = deepseek_experts(r);
    experts.latent = r.count_or({"routed_expert_hidden_size"}, 0);
  }
  Decoder d = r.decoder(s);
  d.style.moe = "block_sparse_moe";
  d.style.expert_gate = "w1";
  d.style.expert_up = "w3";
  d.style.expert_down = "w2";
  d.style.correction_bias = "gate.e_score_correction_bias";
  d.style.latent_in = "routed_expert_down_proj";
  d.style.latent_out = "routed_expert_up_proj";
  if (r.flag({"latent_moe_use_norm"}, false)) d.style.latent_norm = "routed_expert_norm";
  if (r.flag({"mla_use_output_gate"}, false)) d.style.attention_gate = "g_proj";
  d.layer = [=](int64_t i) {
    Layer layer{is_linear[static_cast<size_t>(i)] ? linear : full, 0};
    if (where[static_cast<size_t>(i)]) layer.kind.mlp = experts;
    return layer;
  };
  d.mixer = [hidden = s.hidden, full_rank](TensorList& t, const Layer& layer, const std::string& prefix) {
    if (layer.kind.attention.kind != AttentionKind::linear) return false;
    kimi_delta_tensors(t, dotted(prefix, "self_attn"), layer.kind.attention, hidden, full_rank);
    return true;
  };
  // K3: attention over the outputs of earlier blocks of layers.
  if (r.count_or({"attn_res_block_size"}, 0, kMaxLayers) > 0) {
    d.extra = [hidden = s.hidden](TensorList& t, const Layer&, const std::string& prefix) {
      for (const char* site : {"self_attention_res", "mlp_res"}) {
        t.norm(prefix, fmt::format("{}_norm", site), hidden, NormKind::rmsnorm, false);
        t.linear(prefix, fmt::format("{}_proj", site), 1, hidden, Role::other, Shard::replicated);
      }
      return true;
    };
    d.outer = [hidden = s.hidden](TensorList& t, const std::string& root) {
      t.norm(root, "output_attn_res_norm", hidden, NormKind::rmsnorm, false);
      t.linear(root, "output_attn_res_proj", 1, hidden, Role::other, Shard::replicated);
    };
  }
  return d;
}

}  // namespace vram::arch
