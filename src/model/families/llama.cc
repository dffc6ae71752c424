// Descendants of Llama: one RMSNorm before attention, one before a gated MLP, rotary positions. Each function states
// only what its family changes. Structures follow the published modelling files of each family.
#include <fmt/format.h>

#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "model/families/families.h"

namespace vram::arch {

namespace {

using QkNorm = Attention::QkNorm;

LayerKind base_kind(const Reader& r, const Sizes& s) {
  LayerKind k;
  k.attention = r.attention(s);
  k.mlp = r.gated(s);
  r.dropouts(k);
  return k;
}

// All layers alike.
Decoder uniform(const Reader& r, const Sizes& s, const LayerKind& kind, bool tied_default = false) {
  Decoder d = r.decoder(s, tied_default);
  d.norm = kind.norm;
  d.layer = [kind](int64_t) { return Layer{kind, 0}; };
  return d;
}

// Layers whose attention slides where `kinds` says so.
Decoder windowed(const Reader& r, const Sizes& s, LayerKind kind, std::vector<AttentionKind> kinds, int64_t window,
                 bool tied_default = false) {
  Decoder d = r.decoder(s, tied_default);
  d.norm = kind.norm;
  d.layer = [kind, kinds = std::move(kinds), window](int64_t i) {
    Layer layer{kind, 0};
    layer.kind.attention.kind = kinds[static_cast<size_t>(i)];
    if (layer.kind.attention.kind != AttentionKind::full) layer.kind.attention.window = window;
    return layer;
  };
  return d;
}

bool explicit_null(const Reader& r, std::string_view name) {
  const Document* d = r.text().document().find(name);
  return d && d->is_null();
}

// Every `period`-th layer sees everything, the others a window.
std::vector<AttentionKind> every_nth_full(const Reader& r, int64_t layers, int64_t period) {
  return r.attention_kinds(
      layers, [period](int64_t i) { return (i + 1) % period == 0 ? AttentionKind::full : AttentionKind::sliding; });
}

}  // namespace

Decoder llama(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias", "bias", "qkv_bias"}, false);
  k.mlp.bias = r.flag({"mlp_bias"}, false);
  return uniform(r, s, k);
}

Decoder mistral(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  const int64_t window = r.size_or({"sliding_window"}, 0, kMaxPositions);
  if (window > 0) {
    k.attention.kind = AttentionKind::sliding;
    k.attention.window = window;
  }
  return uniform(r, s, k);
}

Decoder smollm3(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, false);
  k.mlp.bias = r.flag({"mlp_bias"}, false);
  const int64_t window = r.flag({"use_sliding_window"}, false) ? r.size_or({"sliding_window"}, 0, kMaxPositions) : 0;
  return windowed(r, s, k, r.attention_kinds(s.layers, [](int64_t) { return AttentionKind::full; }), window, true);
}

Decoder internlm(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"bias", "qkv_bias"}, true);
  return uniform(r, s, k);
}

Decoder internlm2(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"bias"}, false);
  Decoder d = uniform(r, s, k);
  d.style.embedding = "tok_embeddings";
  d.style.attention = "attention";
  d.style.fused_qkv = "wqkv";
  d.style.o = "wo";
  d.style.mlp = "feed_forward";
  d.style.gate = "w1";
  d.style.up = "w3";
  d.style.down = "w2";
  d.style.norms = {"attention_norm", "ffn_norm"};
  d.style.head = "output";
  return d;
}

Decoder baichuan(const Reader& r) {
  const Sizes s = r.sizes();
  Decoder d = uniform(r, s, base_kind(r, s));
  d.style.fused_qkv = "W_pack";
  return d;
}

Decoder orion(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.norm = NormKind::layernorm;
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, false);
  Decoder d = uniform(r, s, k);
  d.style.norm_bias = true;
  return d;
}

Decoder minicpm(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  if (r.text().has({"num_experts"}) && r.count_or({"num_experts"}, 0, kMaxExperts) > 0) {
    k.mlp = r.moe({"num_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  }
  Decoder d = uniform(r, s, k, true);
  d.style.expert_gate = "w1";
  d.style.expert_up = "w3";
  d.style.expert_down = "w2";
  return d;
}

Decoder olmo(const Reader& r) {
  // OLMo 1 normalizes without any learned scale or shift.
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.norm = NormKind::none;
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, false);
  return uniform(r, s, k);
}

Decoder olmo2(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.attention.qk_norm = QkNorm::full_width;
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, false);
  Decoder d = uniform(r, s, k);
  d.style.norms = {"post_attention_layernorm", "post_feedforward_layernorm"};
  return d;
}

Decoder olmo3(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.attention.qk_norm = QkNorm::full_width;
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, false);
  Decoder d = windowed(r, s, k, every_nth_full(r, s.layers, 4), r.size_or({"sliding_window"}, 4096, kMaxPositions));
  d.style.norms = {"post_attention_layernorm", "post_feedforward_layernorm"};
  return d;
}

namespace {

LayerKind cohere_kind(const Reader& r, const Sizes& s) {
  LayerKind k = base_kind(r, s);
  k.norm = NormKind::layernorm;
  k.norms = 1;
  k.parallel = true;
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, false);
  if (r.flag({"use_qk_norm"}, false)) k.attention.qk_norm = QkNorm::full_width;
  return k;
}

void cohere_style(Decoder& d) {
  d.style.norms = {"input_layernorm"};
  d.style.qk_norm_kind = NormKind::layernorm;
}

}  // namespace

Decoder cohere(const Reader& r) {
  const Sizes s = r.sizes();
  Decoder d = uniform(r, s, cohere_kind(r, s), true);
  cohere_style(d);
  return d;
}

Decoder cohere2(const Reader& r) {
  const Sizes s = r.sizes();
  const int64_t period = r.size_or({"sliding_window_pattern"}, 4);
  Decoder d = windowed(r, s, cohere_kind(r, s), every_nth_full(r, s.layers, period),
                       r.size_or({"sliding_window"}, 4096, kMaxPositions), true);
  cohere_style(d);
  return d;
}

Decoder stablelm(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.norm = NormKind::layernorm;
  k.attention.qkv_bias = r.flag({"use_qkv_bias"}, false);
  if (r.flag({"qk_layernorm"}, false)) k.attention.qk_norm = QkNorm::full_width;
  k.parallel = r.flag({"use_parallel_residual"}, false);
  if (k.parallel) k.norms = 1;
  Decoder d = uniform(r, s, k);
  if (k.parallel) d.style.norms = {"input_layernorm"};
  d.style.norm_bias = true;
  d.style.qk_norm_kind = NormKind::layernorm;
  d.style.q_norm = "q_layernorm";
  d.style.k_norm = "k_layernorm";
  return d;
}

Decoder starcoder2(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k;
  k.attention = r.attention(s);
  k.mlp = r.plain(s, "gelu_pytorch_tanh");
  k.norm = NormKind::layernorm;
  k.attention.qkv_bias = k.attention.out_bias = k.mlp.bias = r.flag({"use_bias"}, true);
  r.dropouts(k);
  const int64_t window = r.size_or({"sliding_window"}, 0, kMaxPositions);
  if (window > 0) {
    k.attention.kind = AttentionKind::sliding;
    k.attention.window = window;
  }
  Decoder d = uniform(r, s, k, true);
  d.style.norm_bias = true;
  d.style.up = "c_fc";
  d.style.down = "c_proj";
  return d;
}

Decoder exaone(const Reader& r) {
  const Sizes s = r.sizes();
  Decoder d = uniform(r, s, base_kind(r, s));
  d.style.root = "transformer";
  d.style.layers = "h";
  d.style.embedding = "wte";
  d.style.attention = "attn.attention";
  d.style.o = "out_proj";
  d.style.gate = "c_fc_0";
  d.style.up = "c_fc_1";
  d.style.down = "c_proj";
  d.style.norms = {"ln_1", "ln_2"};
  d.style.final_norm = "ln_f";
  return d;
}

Decoder exaone4(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.attention.qk_norm = QkNorm::per_head;
  // A null window means that every layer sees everything (the 1.2B model).
  const bool slides = !explicit_null(r, "sliding_window");
  const int64_t period = r.size_or({"sliding_window_pattern"}, 4);
  const auto kinds = slides ? every_nth_full(r, s.layers, period)
                            : std::vector<AttentionKind>(static_cast<size_t>(s.layers), AttentionKind::full);
  Decoder d = windowed(r, s, k, kinds, r.size_or({"sliding_window"}, 4096, kMaxPositions));
  d.style.norms = {"post_attention_layernorm", "post_feedforward_layernorm"};
  return d;
}

Decoder ernie45(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.attention.qkv_bias = k.attention.out_bias = k.mlp.bias = r.flag({"use_bias"}, false);
  return uniform(r, s, k, true);
}

Decoder hunyuan_dense(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, false);
  k.mlp.bias = r.flag({"mlp_bias"}, false);
  if (r.flag({"use_qk_norm"}, true)) k.attention.qk_norm = QkNorm::per_head;
  Decoder d = uniform(r, s, k, true);
  d.style.q_norm = "query_layernorm";
  d.style.k_norm = "key_layernorm";
  return d;
}

Decoder nemotron(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k;
  k.attention = r.attention(s);
  k.mlp = r.plain(s, "relu2");
  k.norm = NormKind::layernorm;
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, false);
  k.mlp.bias = r.flag({"mlp_bias"}, false);
  r.dropouts(k);
  Decoder d = uniform(r, s, k);
  d.style.norm_bias = true;
  return d;
}

Decoder pangu_embedded(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"bias"}, true);
  return uniform(r, s, k);
}

Decoder mimo(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.attention.qkv_bias = r.flag({"attention_bias"}, true);
  Decoder d = uniform(r, s, k);
  // The prediction layer has names of its own, and the same sizes as DeepSeek's without embedding copies.
  d.mtp.count = r.count_or({"num_nextn_predict_layers"}, 0, kMaxLayers);
  d.mtp.layer = {k, 0};
  return d;
}

Decoder seed_oss(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.attention.qkv_bias = r.flag({"attention_bias"}, true);
  k.attention.out_bias = r.flag({"attention_out_bias"}, false);
  k.mlp.bias = r.flag({"mlp_bias"}, false);
  return uniform(r, s, k);
}

Decoder bitnet(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.norms = 4;
  Decoder d = uniform(r, s, k, true);
  d.extra = [ffn = s.ffn, hidden = s.hidden](TensorList& t, const Layer&, const std::string& prefix) {
    t.norm(dotted(prefix, "self_attn"), "attn_sub_norm", hidden, NormKind::rmsnorm, false);
    t.norm(dotted(prefix, "mlp"), "ffn_sub_norm", ffn, NormKind::rmsnorm, false);
    return true;
  };
  return d;
}

Decoder arcee(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k = base_kind(r, s);
  k.mlp = r.plain(s, "relu2");
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, false);
  k.mlp.bias = r.flag({"mlp_bias"}, false);
  return uniform(r, s, k);
}

namespace {

// Widths that the architecture search gives as a factor: two thirds of factor x hidden, rounded up to 256 (DeciLM).
int64_t deci_ffn(const Fields& ffn, int64_t hidden) {
  if (const auto width = ffn.integer({"intermediate_size"}, {1, kMaxVocab})) return *width;
  const auto factor = ffn.real({"ffn_mult"}, 1e-6, 1e6);
  if (!factor) ffn.refuse("ffn_mult", "is missing", "a number, or intermediate_size");
  const double width = std::floor(2.0 * *factor * static_cast<double>(hidden) / 3.0);
  return round_up(static_cast<int64_t>(width), 256);
}

}  // namespace

Decoder nemotron_nas(const Reader& r) {
  Sizes s;
  s.hidden = r.hidden();
  s.layers = r.layers();
  s.heads = r.heads();
  s.head_dim = r.head_dim(s.hidden, s.heads);
  s.vocab = r.vocab();
  s.positions = r.positions();
  const Document* blocks = r.text().find({"block_configs"});
  if (!blocks || !blocks->is_array() || static_cast<int64_t>(blocks->array().size()) < s.layers) {
    r.text().refuse("block_configs", "must describe every layer", fmt::format("a list of {} objects", s.layers));
  }
  const bool bias = r.flag({"attention_bias"}, false);
  const std::string activation = r.activation("silu");
  // 0: as described; 1: the attention is one matrix; 2: the MLP is one matrix; 3: both.
  std::vector<Layer> layers;
  for (const Document& block : blocks->array()) {
    if (static_cast<int64_t>(layers.size()) == s.layers) break;
    const Fields fields(block, r.text().file(), "block_configs.");
    Layer layer;
    layer.kind.norms = 0;
    const auto attention = fields.object({"attention"});
    const auto ffn = fields.object({"ffn"});
    Attention& a = layer.kind.attention;
    a.kind = AttentionKind::none;
    if (attention && attention->boolean_or({"replace_with_linear"}, false)) {
      layer.variant |= 1;
    } else if (attention && !attention->boolean_or({"no_op"}, false)) {
      const int64_t group = attention->required_integer({"n_heads_in_group"}, {1, kMaxWidth});
      if (s.heads % group != 0) {
        attention->refuse("n_heads_in_group", fmt::format("does not divide the {} heads", s.heads));
      }
      s.kv_heads = s.heads / group;
      a = r.attention(s);
      a.qkv_bias = a.out_bias = bias;
    }
    Mlp& m = layer.kind.mlp;
    m.kind = MlpKind::none;
    m.activation = activation;
    if (ffn && ffn->boolean_or({"replace_with_linear"}, false)) {
      layer.variant |= 2;
    } else if (ffn && !ffn->boolean_or({"no_op"}, false)) {
      m.kind = MlpKind::gated;
      m.ffn = deci_ffn(*ffn, s.hidden);
    }
    if (a.kind != AttentionKind::none || (layer.variant & 1)) ++layer.kind.norms;
    if (m.kind != MlpKind::none || (layer.variant & 2)) ++layer.kind.norms;
    layers.push_back(layer);
  }
  Decoder d = r.decoder(s);
  d.style.norms.clear();
  d.layer = [layers](int64_t i) { return layers[static_cast<size_t>(i)]; };
  d.extra = [hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    const bool mixes = layer.kind.attention.kind != AttentionKind::none || (layer.variant & 1);
    const bool feeds = layer.kind.mlp.kind != MlpKind::none || (layer.variant & 2);
    if (mixes) t.norm(prefix, "input_layernorm", hidden, NormKind::rmsnorm, false);
    if (feeds) t.norm(prefix, "post_attention_layernorm", hidden, NormKind::rmsnorm, false);
    if (layer.variant & 1) {
      t.linear(dotted(prefix, "self_attn"), "linear_attn", hidden, hidden, Role::attention_other, Shard::replicated);
    }
    if (layer.variant & 2)
      t.linear(dotted(prefix, "mlp"), "linear_mlp", hidden, hidden, Role::mlp_up, Shard::replicated);
    return true;
  };
  return d;
}

Decoder molmo(const Reader& r) {
  Sizes s = r.sizes();
  s.vocab = r.size({"embedding_size", "vocab_size"}, kMaxVocab);
  // intermediate_size is gate and up together.
  s.ffn /= 2;
  LayerKind k;
  k.attention = r.attention(s);
  k.mlp = r.gated(s);
  k.attention.qkv_bias = r.flag({"qkv_bias"}, true);
  if (r.flag({"attention_layer_norm"}, false)) k.attention.qk_norm = QkNorm::full_width;
  Decoder d = uniform(r, s, k);
  d.style.root = "model.transformer";
  d.style.layers = "blocks";
  d.style.attention = "";
  d.style.mlp = "";
  d.style.fused_qkv = "att_proj";
  d.style.o = "attn_out";
  d.style.fused_gate_up = "ff_proj";
  d.style.down = "ff_out";
  d.style.norms = {"attn_norm", "ff_norm"};
  d.style.embedding = "wte";
  d.style.final_norm = "ln_f";
  d.style.head = "model.transformer.ff_out";
  // 128 more rows stand for image tokens.
  const int64_t more = r.count_or({"additional_vocab_size"}, 128, kMaxVocab);
  d.outer = [more, hidden = s.hidden](TensorList& t, const std::string& root) {
    if (more > 0) t.add(dotted(root, "wte.new_embedding"), dotted(root, "wte"), {more, hidden}, Role::embedding);
  };
  return d;
}

}  // namespace vram::arch
