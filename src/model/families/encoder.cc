// Models with an encoder: T5, Whisper, BERT.
#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "model/families/families.h"

namespace vram::arch {

namespace {

using Part = TensorGroup::Part;

LayerKind stack_kind(const Reader& r, int64_t heads, int64_t head_dim, int64_t ffn, bool gated, NormKind norm,
                     bool bias, bool encoder, bool cross) {
  LayerKind k;
  Attention& a = k.attention;
  a.heads = a.kv_heads = heads;
  a.head_dim = a.value_head_dim = head_dim;
  a.qkv_bias = a.out_bias = bias;
  a.cross = cross;
  k.mlp.kind = gated ? MlpKind::gated : MlpKind::plain;
  k.mlp.ffn = ffn;
  k.mlp.bias = bias;
  k.norm = norm;
  k.norms = cross ? 3 : 2;
  k.encoder = encoder;
  r.dropouts(k);
  return k;
}

}  // namespace

void t5(const Reader& r, Assembly& assembly) {
  const int64_t h = r.hidden();
  const int64_t encoder_layers = r.layers();
  const int64_t decoder_layers = r.size_or({"num_decoder_layers"}, encoder_layers, kMaxLayers);
  const int64_t heads = r.heads();
  const int64_t d = r.size_or({"d_kv"}, 64);
  const int64_t ffn = r.size({"d_ff"}, kMaxVocab);
  const int64_t vocab = r.vocab();
  const int64_t buckets = r.size_or({"relative_attention_num_buckets"}, 32);
  const std::string projection = r.word({"feed_forward_proj"}, "relu");
  const bool gated = projection.rfind("gated", 0) == 0;
  const bool tied = r.tied(true);
  const int64_t inner = checked_mul(heads, d);
  Model& model = assembly.model();
  model.hidden = h;
  model.vocab = vocab;
  model.tied_embeddings = tied;
  model.max_positions = r.positions();

  // The shared embedding belongs to the text part.
  assembly.once(Part::text).table("", "shared", vocab, h, Role::embedding, Shard::vocab);
  const auto attention = [&](TensorList& t, const std::string& module) {
    t.linear(module, "q", inner, h, Role::attention_q, Shard::column);
    t.linear(module, "k", inner, h, Role::attention_k, Shard::column);
    t.linear(module, "v", inner, h, Role::attention_v, Shard::column);
    t.linear(module, "o", h, inner, Role::attention_out, Shard::row);
  };
  const auto feed_forward = [&](TensorList& t, const std::string& module) {
    const std::string m = dotted(module, "DenseReluDense");
    if (gated) {
      t.linear(m, "wi_0", ffn, h, Role::mlp_gate, Shard::column);
      t.linear(m, "wi_1", ffn, h, Role::mlp_up, Shard::column);
    } else {
      t.linear(m, "wi", ffn, h, Role::mlp_up, Shard::column);
    }
    t.linear(m, "wo", h, ffn, Role::mlp_down, Shard::row);
    t.norm(module, "layer_norm", h, NormKind::rmsnorm, false);
  };
  const auto stack = [&](Part part, const char* name, int64_t layers, bool cross) {
    LayerKind k = stack_kind(r, heads, d, ffn, gated, NormKind::rmsnorm, false, !cross, cross);
    r.dropouts(k, 0.1, 0.1);  // T5Config: dropout_rate = 0.1, of attention weights too
    k.mlp.activation = gated ? projection.substr(projection.find('-') + 1) : projection;
    const std::string block = fmt::format("{}.block.{{layer}}.layer", name);
    for (int64_t i = 0; i < layers; ++i) {
      // Only the first block has the table of relative positions.
      assembly.layer(part, i, k, i == 0 ? 1 : 0, [&, i](TensorList t) {
        attention(t, block + ".0.SelfAttention");
        if (i == 0) {
          t.table(block + ".0.SelfAttention", "relative_attention_bias", buckets, heads, Role::position_embedding,
                  Shard::replicated);
        }
        t.norm(block + ".0", "layer_norm", h, NormKind::rmsnorm, false);
        if (cross) {
          attention(t, block + ".1.EncDecAttention");
          t.norm(block + ".1", "layer_norm", h, NormKind::rmsnorm, false);
        }
        feed_forward(t, block + (cross ? ".2" : ".1"));
      });
    }
    assembly.once(part).norm(name, "final_layer_norm", h, NormKind::rmsnorm, false);
  };
  stack(Part::encoder, "encoder", encoder_layers, false);
  stack(Part::text, "decoder", decoder_layers, true);
  if (!tied) assembly.once(Part::text).linear("", "lm_head", vocab, h, Role::head, Shard::vocab);
}

void whisper(const Reader& r, Assembly& assembly) {
  const int64_t h = r.hidden();
  const int64_t vocab = r.vocab();
  const int64_t mels = r.size_or({"num_mel_bins"}, 80);
  const int64_t sources = r.size_or({"max_source_positions"}, 1500, kMaxPositions);
  const int64_t targets = r.size_or({"max_target_positions"}, 448, kMaxPositions);
  const bool tied = r.tied(true);
  Model& model = assembly.model();
  model.hidden = h;
  model.vocab = vocab;
  model.tied_embeddings = tied;
  model.learned_positions = true;
  model.max_positions = targets;

  const auto attention = [&](TensorList& t, const std::string& module) {
    t.linear(module, "q_proj", h, h, Role::attention_q, Shard::column, true);
    t.linear(module, "k_proj", h, h, Role::attention_k, Shard::column, false);
    t.linear(module, "v_proj", h, h, Role::attention_v, Shard::column, true);
    t.linear(module, "out_proj", h, h, Role::attention_out, Shard::row, true);
  };
  const auto stack = [&](Part part, const char* side, bool cross) {
    const std::string prefix = side;
    const auto name = [&](const char* leaf) { return prefix + leaf; };
    const int64_t layers = cross ? r.size({"decoder_layers"}, kMaxLayers) : r.size({"encoder_layers"}, kMaxLayers);
    const int64_t heads = cross ? r.size({"decoder_attention_heads"}) : r.size({"encoder_attention_heads"});
    const int64_t ffn =
        cross ? r.size_or({"decoder_ffn_dim"}, checked_mul(4, h)) : r.size_or({"encoder_ffn_dim"}, checked_mul(4, h));
    if (h % heads != 0) {
      r.text().refuse(name("_attention_heads"), fmt::format("does not divide d_model {}", h),
                      fmt::format("a divisor of {}", h));
    }
    LayerKind k = stack_kind(r, heads, h / heads, ffn, false, NormKind::layernorm, true, !cross, cross);
    k.mlp.activation = r.word({"activation_function"}, "gelu");
    const std::string root = "model." + prefix;
    {
      TensorList t = assembly.once(part);
      if (cross) {
        t.table(root, "embed_tokens", vocab, h, Role::embedding, Shard::vocab);
      } else {
        t.add(root + ".conv1.weight", root, {h, mels, 3}, Role::convolution);
        t.add(root + ".conv1.bias", root, {h}, Role::bias);
        t.add(root + ".conv2.weight", root, {h, h, 3}, Role::convolution);
        t.add(root + ".conv2.bias", root, {h}, Role::bias);
      }
      t.table(root, "embed_positions", cross ? targets : sources, h, Role::position_embedding, Shard::replicated);
      t.norm(root, "layer_norm", h, NormKind::layernorm, true);
    }
    const std::string layer = root + ".layers.{layer}";
    for (int64_t i = 0; i < layers; ++i) {
      assembly.layer(part, i, k, 0, [&](TensorList t) {
        attention(t, layer + ".self_attn");
        t.norm(layer, "self_attn_layer_norm", h, NormKind::layernorm, true);
        if (cross) {
          attention(t, layer + ".encoder_attn");
          t.norm(layer, "encoder_attn_layer_norm", h, NormKind::layernorm, true);
        }
        t.linear(layer, "fc1", ffn, h, Role::mlp_up, Shard::column, true);
        t.linear(layer, "fc2", h, ffn, Role::mlp_down, Shard::row, true);
        t.norm(layer, "final_layer_norm", h, NormKind::layernorm, true);
      });
    }
  };
  stack(Part::encoder, "encoder", false);
  stack(Part::text, "decoder", true);
  if (!tied) assembly.once(Part::text).linear("", "proj_out", vocab, h, Role::head, Shard::vocab);
}

void bert(const Reader& r, Assembly& assembly) {
  const Sizes s = r.sizes(4);
  const int64_t h = s.hidden;
  Model& model = assembly.model();
  model.hidden = h;
  model.vocab = s.vocab;
  model.tied_embeddings = true;
  model.learned_positions = true;
  model.max_positions = s.positions;
  LayerKind k = stack_kind(r, s.heads, s.head_dim, s.ffn, false, NormKind::layernorm, true, true, false);
  k.mlp.activation = r.activation("gelu");
  r.dropouts(k, 0.1, 0.1);
  constexpr auto kPart = Part::encoder;
  {
    TensorList t = assembly.once(kPart);
    t.table("embeddings", "word_embeddings", s.vocab, h, Role::embedding, Shard::vocab);
    t.table("embeddings", "position_embeddings", r.size({"max_position_embeddings"}, kMaxPositions), h,
            Role::position_embedding, Shard::replicated);
    t.table("embeddings", "token_type_embeddings", r.size_or({"type_vocab_size"}, 2), h, Role::position_embedding,
            Shard::replicated);
    t.norm("embeddings", "LayerNorm", h, NormKind::layernorm, true);
    t.linear("pooler", "dense", h, h, Role::other, Shard::replicated, true);
  }
  const std::string layer = "encoder.layer.{layer}";
  for (int64_t i = 0; i < s.layers; ++i) {
    assembly.layer(kPart, i, k, 0, [&](TensorList t) {
      t.linear(layer + ".attention.self", "query", h, h, Role::attention_q, Shard::column, true);
      t.linear(layer + ".attention.self", "key", h, h, Role::attention_k, Shard::column, true);
      t.linear(layer + ".attention.self", "value", h, h, Role::attention_v, Shard::column, true);
      t.linear(layer + ".attention.output", "dense", h, h, Role::attention_out, Shard::row, true);
      t.norm(layer + ".attention.output", "LayerNorm", h, NormKind::layernorm, true);
      t.linear(layer + ".intermediate", "dense", s.ffn, h, Role::mlp_up, Shard::column, true);
      t.linear(layer + ".output", "dense", h, s.ffn, Role::mlp_down, Shard::row, true);
      t.norm(layer + ".output", "LayerNorm", h, NormKind::layernorm, true);
    });
  }
}

}  // namespace vram::arch
