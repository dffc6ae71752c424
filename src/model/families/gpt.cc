// The GPT-2 line: LayerNorm, plain MLP, biases, learned or ALiBi positions.
#include <fmt/format.h>

#include "base/checked.h"
#include "model/families/families.h"

namespace vram::arch {

namespace {

LayerKind gpt_kind(const Reader& r, const Sizes& s, std::string_view activation, bool bias) {
  LayerKind k;
  k.attention = r.attention(s);
  k.attention.qkv_bias = k.attention.out_bias = bias;
  k.mlp = r.plain(s, activation);
  k.mlp.bias = bias;
  k.norm = NormKind::layernorm;
  return k;
}

Decoder gpt_decoder(const Reader& r, const Sizes& s, const LayerKind& k, bool tied) {
  Decoder d = r.decoder(s, tied);
  d.norm = k.norm;
  d.layer = [k](int64_t) { return Layer{k, 0}; };
  d.style.norm_bias = true;
  return d;
}

// GPT-2's names, shared by several.
void transformer_names(Style& s) {
  s.root = "transformer";
  s.layers = "h";
  s.embedding = "wte";
  s.positions = "wpe";
  s.attention = "attn";
  s.fused_qkv = "c_attn";
  s.o = "c_proj";
  s.up = "c_fc";
  s.down = "c_proj";
  s.norms = {"ln_1", "ln_2"};
  s.final_norm = "ln_f";
}

}  // namespace

Decoder gpt2(const Reader& r) {
  const Sizes s = r.sizes(4);
  LayerKind k = gpt_kind(r, s, "gelu_new", true);
  r.dropouts(k, 0.1, 0.1);
  Decoder d = gpt_decoder(r, s, k, true);
  transformer_names(d.style);
  d.style.transposed = true;
  d.position_rows = r.size({"n_positions", "n_ctx", "max_position_embeddings"}, kMaxPositions);
  return d;
}

Decoder gptj(const Reader& r) {
  const Sizes s = r.sizes(4);
  LayerKind k = gpt_kind(r, s, "gelu_new", true);
  k.attention.qkv_bias = k.attention.out_bias = false;
  k.norms = 1;
  k.parallel = true;
  r.dropouts(k);
  Decoder d = gpt_decoder(r, s, k, false);
  transformer_names(d.style);
  d.style.fused_qkv = "";
  d.style.o = "out_proj";
  d.style.up = "fc_in";
  d.style.down = "fc_out";
  d.style.norms = {"ln_1"};
  d.head_bias = true;
  return d;
}

Decoder gpt_neo(const Reader& r) {
  const Sizes s = r.sizes(4);
  LayerKind k = gpt_kind(r, s, "gelu_new", true);
  k.attention.qkv_bias = false;
  r.dropouts(k);
  Decoder d = gpt_decoder(r, s, k, true);
  transformer_names(d.style);
  d.style.attention = "attn.attention";
  d.style.fused_qkv = "";
  d.style.o = "out_proj";
  d.position_rows = r.size({"max_position_embeddings"}, kMaxPositions);
  const int64_t window = r.size_or({"window_size"}, 256, kMaxPositions);
  const auto words = r.layer_words({"attention_layers"}, s.layers);
  d.layer = [=](int64_t i) {
    Layer layer{k, 0};
    const bool local = words ? (*words)[static_cast<size_t>(i)] == "local" : i % 2 == 1;
    if (local) {
      layer.kind.attention.kind = AttentionKind::sliding;
      layer.kind.attention.window = window;
    }
    return layer;
  };
  return d;
}

Decoder gpt_neox(const Reader& r) {
  const Sizes s = r.sizes(4);
  LayerKind k = gpt_kind(r, s, "gelu", true);
  k.attention.qkv_bias = k.attention.out_bias = r.flag({"attention_bias"}, true);
  k.parallel = r.flag({"use_parallel_residual"}, true);
  r.dropouts(k);
  Decoder d = gpt_decoder(r, s, k, false);
  d.style.root = "gpt_neox";
  d.style.embedding = "embed_in";
  d.style.attention = "attention";
  d.style.fused_qkv = "query_key_value";
  d.style.o = "dense";
  d.style.up = "dense_h_to_4h";
  d.style.down = "dense_4h_to_h";
  d.style.final_norm = "final_layer_norm";
  d.style.head = "embed_out";
  return d;
}

Decoder gpt_bigcode(const Reader& r) {
  Sizes s = r.sizes(4);
  s.kv_heads = r.flag({"multi_query"}, true) ? 1 : s.heads;
  LayerKind k = gpt_kind(r, s, "gelu_pytorch_tanh", true);
  r.dropouts(k, 0.1, 0.1);
  Decoder d = gpt_decoder(r, s, k, true);
  transformer_names(d.style);
  d.position_rows = r.size({"n_positions", "max_position_embeddings"}, kMaxPositions);
  return d;
}

Decoder opt(const Reader& r) {
  const Sizes s = r.sizes(4);
  LayerKind k = gpt_kind(r, s, "relu", r.flag({"enable_bias"}, true));
  r.dropouts(k, 0.0, 0.1);
  Decoder d = gpt_decoder(r, s, k, true);
  d.style.root = "model.decoder";
  d.style.positions = "embed_positions";
  d.style.o = "out_proj";
  d.style.mlp = "";
  d.style.up = "fc1";
  d.style.down = "fc2";
  d.style.norms = {"self_attn_layer_norm", "final_layer_norm"};
  const bool norm_first = r.flag({"do_layer_norm_before"}, true);
  const bool removed = r.flag({"_remove_final_layer_norm"}, false);
  d.style.final_norm = norm_first && !removed ? "final_layer_norm" : "";
  // Positions are counted from 2 on: the first two rows are never used.
  d.position_rows = checked_add(r.size({"max_position_embeddings"}, kMaxPositions), 2);
  const int64_t width = r.size_or({"word_embed_proj_dim"}, s.hidden);
  if (width != s.hidden) {
    d.embedding_width = width;
    d.outer = [width, hidden = s.hidden](TensorList& t, const std::string& root) {
      t.linear(root, "project_in", hidden, width, Role::other, Shard::replicated);
      t.linear(root, "project_out", width, hidden, Role::other, Shard::replicated);
    };
  }
  return d;
}

Decoder bloom(const Reader& r) {
  const Sizes s = r.sizes(4);
  LayerKind k = gpt_kind(r, s, "gelu", true);
  r.dropouts(k);
  Decoder d = gpt_decoder(r, s, k, true);
  d.style.root = "transformer";
  d.style.layers = "h";
  d.style.embedding = "word_embeddings";
  d.style.embedding_norm = "word_embeddings_layernorm";
  d.style.attention = "self_attention";
  d.style.fused_qkv = "query_key_value";
  d.style.o = "dense";
  d.style.up = "dense_h_to_4h";
  d.style.down = "dense_4h_to_h";
  d.style.final_norm = "ln_f";
  return d;
}

Decoder falcon(const Reader& r) {
  Sizes s;
  s.hidden = r.hidden();
  s.layers = r.layers();
  s.heads = r.heads();
  s.head_dim = r.head_dim(s.hidden, s.heads);
  s.ffn = r.ffn(checked_mul(4, s.hidden));
  s.vocab = r.vocab();
  s.positions = r.positions();
  const bool grouped = r.flag({"new_decoder_architecture"}, false);
  const bool multi_query = r.flag({"multi_query"}, true);
  const bool parallel = r.flag({"parallel_attn"}, true);
  // Without the new architecture multi_query means one KV head, whatever num_kv_heads says.
  s.kv_heads = grouped ? r.kv_heads(s.heads) : multi_query ? 1 : s.heads;
  LayerKind k = gpt_kind(r, s, "gelu", r.flag({"bias"}, false));
  k.parallel = grouped || parallel;
  r.dropouts(k);
  const int64_t norms = grouped ? r.size_or({"num_ln_in_parallel_attn"}, 2, 2) : parallel ? 1 : 2;
  k.norms = norms;
  Decoder d = gpt_decoder(r, s, k, true);
  d.style.root = "transformer";
  d.style.layers = "h";
  d.style.embedding = "word_embeddings";
  d.style.attention = "self_attention";
  d.style.fused_qkv = "query_key_value";
  d.style.o = "dense";
  d.style.up = "dense_h_to_4h";
  d.style.down = "dense_4h_to_h";
  d.style.norms = grouped && norms == 2 ? std::vector<std::string>{"ln_attn", "ln_mlp"}
                  : norms == 1          ? std::vector<std::string>{"input_layernorm"}
                                        : std::vector<std::string>{"input_layernorm", "post_attention_layernorm"};
  d.style.final_norm = "ln_f";
  return d;
}

Decoder mpt(const Reader& r) {
  Sizes s;
  s.hidden = r.hidden();
  s.layers = r.layers();
  s.heads = r.heads();
  s.head_dim = r.head_dim(s.hidden, s.heads);
  s.kv_heads = s.heads;
  s.ffn = checked_mul(r.size_or({"expansion_ratio"}, 4, 1000), s.hidden);
  s.vocab = r.vocab();
  s.positions = r.positions();
  bool alibi = false, rotary = false, qk_norm = false;
  if (const auto attention = r.text().object({"attn_config"})) {
    alibi = attention->boolean_or({"alibi"}, false);
    rotary = attention->boolean_or({"rope"}, false);
    qk_norm = attention->boolean_or({"qk_ln"}, false);
    if (attention->string_or({"attn_type"}, "") == "multiquery_attention") s.kv_heads = 1;
    s.kv_heads = attention->integer_or({"kv_n_heads"}, s.kv_heads, {1, kMaxWidth});
    if (s.heads % s.kv_heads != 0)
      attention->refuse("kv_n_heads", fmt::format("does not divide the {} heads", s.heads));
  }
  const bool bias = !r.flag({"no_bias"}, false);
  LayerKind k = gpt_kind(r, s, "gelu", bias);
  if (qk_norm) k.attention.qk_norm = Attention::QkNorm::full_width;
  r.dropouts(k);
  Decoder d = gpt_decoder(r, s, k, true);
  d.style.root = "transformer";
  d.style.layers = "blocks";
  d.style.embedding = "wte";
  d.style.positions = "wpe";
  d.style.attention = "attn";
  d.style.fused_qkv = "Wqkv";
  d.style.o = "out_proj";
  d.style.q_norm = "q_ln";
  d.style.k_norm = "k_ln";
  d.style.qk_norm_kind = NormKind::layernorm;
  d.style.mlp = "ffn";
  d.style.norms = {"norm_1", "norm_2"};
  d.style.norm_bias = bias;
  d.style.final_norm = "norm_f";
  if (!alibi && !rotary && r.flag({"learned_pos_emb"}, true)) {
    d.position_rows = r.size({"max_seq_len"}, kMaxPositions);
  }
  return d;
}

}  // namespace vram::arch
