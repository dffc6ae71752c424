// RWKV 4 to 7: token shift, a recurrent state of one matrix a head, and a squared-ReLU feed-forward half.
#include "base/checked.h"
#include "model/families/families.h"

namespace vram::arch {

namespace {

constexpr Role kRole = Role::rwkv;

struct Rwkv {
  Sizes s;
  int64_t inner = 0;  // attention_hidden_size
  int64_t head_size = 0;
  int64_t ffn = 0;
};

Rwkv rwkv_sizes(const Reader& r, int64_t default_ffn_permille, int64_t ffn_multiple) {
  Rwkv w;
  w.s.hidden = r.hidden();
  w.s.layers = r.layers();
  w.s.vocab = r.vocab();
  w.s.positions = r.positions();
  w.inner = r.size_or({"attention_hidden_size"}, w.s.hidden);
  w.head_size = r.size_or({"head_size", "head_dim"}, 64);
  if (w.inner % w.head_size != 0)
    r.text().refuse("head_size", "does not divide the attention width", "a divisor of it");
  const int64_t ffn = checked_mul(w.s.hidden, default_ffn_permille) / 1000 / ffn_multiple * ffn_multiple;
  w.ffn = r.size_or({"intermediate_size"}, ffn, kMaxVocab);
  return w;
}

LayerKind rwkv_kind(const Rwkv& w) {
  LayerKind k;
  Attention& a = k.attention;
  a.kind = AttentionKind::rwkv;
  a.heads = a.kv_heads = w.inner / w.head_size;
  a.head_dim = a.value_head_dim = w.head_size;
  a.inner = w.inner;
  a.state_dim = w.head_size;
  a.state_elements = checked_mul(w.inner, w.head_size);
  a.conv_elements = checked_mul(2, w.s.hidden);  // the last token of both halves
  k.mlp.kind = MlpKind::plain;
  k.mlp.ffn = w.ffn;
  k.mlp.activation = "relu2";
  k.norm = NormKind::layernorm;
  return k;
}

Decoder rwkv_decoder(const Reader& r, const Rwkv& w, const LayerKind& k) {
  Decoder d = r.decoder(w.s, false);
  d.norm = NormKind::layernorm;
  // The first block normalizes the embeddings before everything else.
  d.layer = [k](int64_t i) { return Layer{k, i == 0 ? 1 : 0}; };
  d.extra = [hidden = w.s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    if (layer.variant == 1) t.norm(prefix, "pre_ln", hidden, NormKind::layernorm, true);
    return true;
  };
  d.style.root = "rwkv";
  d.style.layers = "blocks";
  d.style.embedding = "embeddings";
  d.style.norms = {"ln1", "ln2"};
  d.style.norm_bias = true;
  d.style.final_norm = "ln_out";
  d.style.head = "head";
  return d;
}

void vectors(TensorList& t, const std::string& module, std::initializer_list<const char*> names, int64_t width) {
  for (const char* name : names) t.add(dotted(module, name), module, {1, 1, width}, kRole);
}

void feed_forward(TensorList& t, const std::string& module, int64_t hidden, int64_t ffn, bool receptance) {
  t.linear(module, "key", ffn, hidden, Role::mlp_up, Shard::column);
  if (receptance) t.linear(module, "receptance", hidden, hidden, Role::mlp_gate, Shard::replicated);
  t.linear(module, "value", hidden, ffn, Role::mlp_down, Shard::row);
}

void projections(TensorList& t, const std::string& module, int64_t hidden, int64_t inner,
                 std::initializer_list<const char*> names) {
  for (const char* name : names) t.linear(module, name, inner, hidden, kRole, Shard::column);
  t.linear(module, "output", hidden, inner, kRole, Shard::row);
}

}  // namespace

Decoder rwkv4(const Reader& r) {
  const Rwkv w = rwkv_sizes(r, 4000, 1);
  LayerKind k = rwkv_kind(w);
  // RWKV 4 keeps vectors: numerator, denominator and maximum besides the shifted tokens.
  k.attention.state_elements = checked_mul(3, w.inner);
  Decoder d = rwkv_decoder(r, w, k);
  d.mixer = [w](TensorList& t, const Layer&, const std::string& prefix) {
    const std::string m = dotted(prefix, "attention");
    t.add(dotted(m, "time_decay"), m, {w.inner}, kRole);
    t.add(dotted(m, "time_first"), m, {w.inner}, kRole);
    vectors(t, m, {"time_mix_key", "time_mix_value", "time_mix_receptance"}, w.s.hidden);
    projections(t, m, w.s.hidden, w.inner, {"key", "value", "receptance"});
    return true;
  };
  d.mlp = [w](TensorList& t, const Layer&, const std::string& prefix) {
    const std::string m = dotted(prefix, "feed_forward");
    vectors(t, m, {"time_mix_key", "time_mix_receptance"}, w.s.hidden);
    feed_forward(t, m, w.s.hidden, w.ffn, true);
    return true;
  };
  return d;
}

Decoder rwkv5(const Reader& r) {
  const Rwkv w = rwkv_sizes(r, 3500, 32);
  Decoder d = rwkv_decoder(r, w, rwkv_kind(w));
  // The published files keep a head of their own whatever tie_word_embeddings says.
  d.tied = false;
  d.mixer = [w](TensorList& t, const Layer& layer, const std::string& prefix) {
    const std::string m = dotted(prefix, "attention");
    const int64_t heads = layer.kind.attention.heads;
    t.add(dotted(m, "time_decay"), m, {heads, w.head_size}, kRole);
    t.add(dotted(m, "time_faaaa"), m, {heads, w.head_size}, kRole);
    vectors(t, m, {"time_mix_gate", "time_mix_key", "time_mix_value", "time_mix_receptance"}, w.s.hidden);
    projections(t, m, w.s.hidden, w.inner, {"key", "value", "receptance", "gate"});
    t.norm(m, "ln_x", w.inner, NormKind::layernorm, true);
    return true;
  };
  d.mlp = [w](TensorList& t, const Layer&, const std::string& prefix) {
    const std::string m = dotted(prefix, "feed_forward");
    vectors(t, m, {"time_mix_key", "time_mix_receptance"}, w.s.hidden);
    feed_forward(t, m, w.s.hidden, w.ffn, true);
    return true;
  };
  return d;
}

Decoder rwkv6(const Reader& r) {
  const Rwkv w = rwkv_sizes(r, 3500, 32);
  // Low-rank adapters of the token mix and of the decay; wider from 4096 on.
  const int64_t mix = r.size_or({"time_mix_extra_dim"}, w.s.hidden >= 4096 ? 64 : 32);
  const int64_t decay = r.size_or({"time_decay_extra_dim"}, w.s.hidden >= 4096 ? 128 : 64);
  Decoder d = rwkv_decoder(r, w, rwkv_kind(w));
  d.tied = false;
  d.mixer = [w, mix, decay](TensorList& t, const Layer& layer, const std::string& prefix) {
    const std::string m = dotted(prefix, "attention");
    const int64_t h = w.s.hidden;
    vectors(t, m, {"time_maa_x", "time_maa_w", "time_maa_k", "time_maa_v", "time_maa_r", "time_maa_g"}, h);
    t.add(dotted(m, "time_maa_w1"), m, {h, checked_mul(5, mix)}, kRole);
    t.add(dotted(m, "time_maa_w2"), m, {5, mix, h}, kRole);
    t.add(dotted(m, "time_decay"), m, {1, 1, w.inner}, kRole);
    t.add(dotted(m, "time_decay_w1"), m, {h, decay}, kRole);
    t.add(dotted(m, "time_decay_w2"), m, {decay, w.inner}, kRole);
    t.add(dotted(m, "time_faaaa"), m, {layer.kind.attention.heads, w.head_size}, kRole);
    projections(t, m, h, w.inner, {"key", "value", "receptance", "gate"});
    t.norm(m, "ln_x", w.inner, NormKind::layernorm, true);
    return true;
  };
  d.mlp = [w](TensorList& t, const Layer&, const std::string& prefix) {
    const std::string m = dotted(prefix, "feed_forward");
    vectors(t, m, {"time_maa_k", "time_maa_r"}, w.s.hidden);
    feed_forward(t, m, w.s.hidden, w.ffn, true);
    return true;
  };
  return d;
}

Decoder rwkv7(const Reader& r) {
  const Rwkv w = rwkv_sizes(r, 4000, 1);
  const int64_t decay = r.size_or({"decay_low_rank_dim"}, 64);
  const int64_t gate = r.size_or({"gate_low_rank_dim"}, 128);
  const int64_t in_context = r.size_or({"a_low_rank_dim"}, 64);
  const int64_t value = r.size_or({"v_low_rank_dim"}, 32);
  if (!r.text().has({"decay_low_rank_dim"})) r.not_given("decay_low_rank_dim ...", "64, 128, 64, 32");
  Decoder d = rwkv_decoder(r, w, rwkv_kind(w));
  d.style.root = "model";
  d.style.layers = "layers";
  d.style.norms = {"attn_norm", "ffn_norm"};
  d.style.final_norm = "norm";
  d.style.head = "lm_head";
  d.mixer = [=](TensorList& t, const Layer& layer, const std::string& prefix) {
    const std::string m = dotted(prefix, "attn");
    const int64_t h = w.s.hidden;
    vectors(t, m, {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g"}, h);
    t.add(dotted(m, "k_k"), m, {w.inner}, kRole);
    t.add(dotted(m, "k_a"), m, {w.inner}, kRole);
    t.add(dotted(m, "r_k"), m, {layer.kind.attention.heads, w.head_size}, kRole);
    const auto low_rank = [&](const char* leaf, int64_t rank, bool bias) {
      const std::string module = dotted(m, leaf);
      t.linear(module, "lora.0", rank, h, kRole, Shard::replicated);
      t.linear(module, "lora.2", w.inner, rank, kRole, Shard::column, bias);
    };
    low_rank("w_lora", decay, true);
    if (layer.variant == 0) low_rank("v_lora", value, true);  // the first layer's values are the reference
    low_rank("a_lora", in_context, true);
    low_rank("g_lora", gate, false);
    for (const char* leaf : {"r_proj", "k_proj", "v_proj"}) t.linear(m, leaf, w.inner, h, kRole, Shard::column);
    t.linear(m, "o_proj", h, w.inner, kRole, Shard::row);
    t.norm(m, "g_norm", w.inner, NormKind::layernorm, true);
    return true;
  };
  d.mlp = [w](TensorList& t, const Layer&, const std::string& prefix) {
    const std::string m = dotted(prefix, "ffn");
    t.add(dotted(m, "x_k"), m, {w.s.hidden}, kRole);
    feed_forward(t, m, w.s.hidden, w.ffn, false);
    return true;
  };
  return d;
}

}  // namespace vram::arch
