#include "model/reader.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"

namespace vram::arch {

int64_t Reader::hidden() const { return size({"hidden_size", "n_embd", "n_embed", "d_model", "model_dim", "dim"}); }

int64_t Reader::layers() const { return size({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, kMaxLayers); }

int64_t Reader::heads() const { return size({"num_attention_heads", "n_head", "n_heads", "num_heads", "num_q_heads"}); }

int64_t Reader::kv_heads(int64_t heads) const {
  const int64_t kv = size_or(
      {"num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "num_key_value_groups"}, heads);
  if (heads % kv != 0) {
    const char* name = text_.has({"num_key_value_heads"}) ? "num_key_value_heads"
                       : text_.has({"num_kv_heads"})      ? "num_kv_heads"
                       : text_.has({"n_head_kv"})         ? "n_head_kv"
                                                          : "multi_query_group_num";
    text_.refuse(name, fmt::format("does not divide the {} attention heads", heads),
                 fmt::format("a divisor of {}", heads));
  }
  return kv;
}

int64_t Reader::head_dim(int64_t hidden, int64_t heads) const {
  if (const auto d = text_.integer({"head_dim", "kv_channels", "attention_head_dim"}, {1, kMaxWidth})) return *d;
  if (hidden % heads != 0) {
    const char* name = text_.has({"num_attention_heads"}) ? "num_attention_heads"
                       : text_.has({"n_head"})            ? "n_head"
                       : text_.has({"n_heads"})           ? "n_heads"
                                                          : "num_heads";
    text_.refuse(name, fmt::format("does not divide the hidden size {}, and head_dim is not given", hidden),
                 fmt::format("a divisor of {}, or head_dim", hidden));
  }
  return hidden / heads;
}

int64_t Reader::ffn(int64_t fallback) const {
  if (fallback > 0 && !text_.has({"intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "d_ff"}))
    return fallback;
  return size({"intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "d_ff"}, kMaxVocab);
}

int64_t Reader::vocab() const { return size({"padded_vocab_size", "vocab_size", "embedding_size"}, kMaxVocab); }

int64_t Reader::positions() const {
  return count_or({"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length",
                   "seq_length", "model_max_length", "context_length", "max_target_positions"},
                  0, kMaxPositions);
}

bool Reader::tied(bool class_default) const {
  if (const auto inner = text_.boolean({"tie_word_embeddings", "tie_embedding", "weight_tying"})) return *inner;
  if (nested()) {
    if (const auto outer = root_.boolean({"tie_word_embeddings"})) return *outer;
  }
  assume("model.assume.family_default",
         {{"field", "tie_word_embeddings"}, {"value", class_default ? "true" : "false"}});
  return class_default;
}

std::string Reader::activation(std::string_view fallback) const {
  return word({"hidden_act", "hidden_activation", "activation_function", "mlp_hidden_act", "feed_forward_proj"},
              std::string(fallback));
}

Sizes Reader::sizes(int64_t ffn_multiple) const {
  Sizes s;
  s.hidden = hidden();
  s.layers = layers();
  s.heads = heads();
  s.kv_heads = kv_heads(s.heads);
  s.head_dim = head_dim(s.hidden, s.heads);
  s.ffn = ffn(ffn_multiple * s.hidden);
  s.vocab = vocab();
  s.positions = positions();
  return s;
}

namespace {

template <class T>
void check_length(const Fields& fields, Reader::Names names, const std::vector<T>& list, int64_t layers) {
  if (static_cast<int64_t>(list.size()) >= layers) return;
  std::string_view name = *names.begin();
  for (std::string_view n : names) {
    if (fields.document().find(n)) {
      name = n;
      break;
    }
  }
  fields.refuse(name, fmt::format("has {} entries for {} layers", list.size(), layers),
                fmt::format("{} entries", layers));
}

}  // namespace

std::optional<std::vector<std::string>> Reader::layer_words(Names names, int64_t layers) const {
  auto words = text_.strings(names);
  if (words) check_length(text_, names, *words, layers);
  return words;
}

std::optional<std::vector<int64_t>> Reader::layer_numbers(Names names, int64_t layers, Range range) const {
  auto numbers = text_.integers(names, range);
  if (numbers) check_length(text_, names, *numbers, layers);
  return numbers;
}

AttentionKind Reader::attention_kind(const std::string& word) const {
  if (word == "full_attention" || word == "attention" || word == "global" || word == "hybrid")
    return AttentionKind::full;
  if (word == "sliding_attention" || word == "sliding_window" || word == "local") return AttentionKind::sliding;
  if (word == "chunked_attention") return AttentionKind::chunked;
  if (word == "linear_attention" || word == "lightning_attention" || word == "recurrent") return AttentionKind::linear;
  if (word == "mamba" || word == "mamba2") return AttentionKind::mamba2;
  if (word == "conv") return AttentionKind::convolution;
  throw InputError(
      {.file = text_.file(),
       .line = text_.find({"layer_types"})->line(),
       .field = text_.prefix() + "layer_types",
       .value = word,
       .problem = "is no known kind of layer",
       .accepted = "full_attention, sliding_attention, chunked_attention, linear_attention, mamba or conv"});
}

Attention Reader::attention(const Sizes& s) const {
  Attention a;
  a.heads = s.heads;
  a.kv_heads = s.kv_heads;
  a.head_dim = s.head_dim;
  a.value_head_dim = s.head_dim;
  return a;
}

Mlp Reader::gated(const Sizes& s, std::string_view fallback) const {
  Mlp m;
  m.kind = MlpKind::gated;
  m.ffn = s.ffn;
  m.activation = activation(fallback);
  return m;
}

Mlp Reader::plain(const Sizes& s, std::string_view fallback) const {
  Mlp m = gated(s, fallback);
  m.kind = MlpKind::plain;
  return m;
}

Mlp Reader::moe(Names experts, Names per_token, Names expert_ffn, std::string_view fallback) const {
  Mlp m;
  m.kind = MlpKind::moe;
  m.experts = size(experts, kMaxExperts);
  m.experts_per_token = size(per_token, kMaxExperts);
  if (m.experts_per_token > m.experts) {
    std::string_view name = *per_token.begin();
    for (std::string_view n : per_token) {
      if (text_.document().find(n)) {
        name = n;
        break;
      }
    }
    text_.refuse(name, fmt::format("exceeds the {} experts", m.experts), fmt::format("1 to {}", m.experts));
  }
  m.expert_ffn = size(expert_ffn, kMaxVocab);
  m.activation = activation(fallback);
  return m;
}

void Reader::dropouts(LayerKind& kind, double attention_default, double hidden_default) const {
  kind.attention_dropout =
      rate({"attention_dropout", "attn_pdrop", "attention_probs_dropout_prob", "attn_dropout_prob"}, attention_default);
  kind.hidden_dropout =
      rate({"hidden_dropout", "resid_pdrop", "hidden_dropout_prob", "residual_dropout", "dropout_rate", "dropout"},
           hidden_default);
}

Decoder Reader::decoder(const Sizes& s, bool tied_default) const {
  Decoder d;
  d.hidden = s.hidden;
  d.vocab = s.vocab;
  d.layers = s.layers;
  d.tied = tied(tied_default);
  model_.max_positions = s.positions;
  return d;
}

}  // namespace vram::arch
