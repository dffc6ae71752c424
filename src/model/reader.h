#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "model/layers.h"
#include "model/model.h"

namespace vram::arch {

// Nothing published comes near these; a value beyond them is a mistake or an attack.
inline constexpr int64_t kMaxLayers = 10'000;
inline constexpr int64_t kMaxWidth = 10'000'000;
inline constexpr int64_t kMaxVocab = 1'000'000'000;
inline constexpr int64_t kMaxExperts = 1'000'000;
inline constexpr int64_t kMaxPositions = int64_t{1} << 40;

/// The usual sizes of a decoder, checked against each other.
struct Sizes {
  int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, positions = 0;
};

/// Reads a config under the many names that families use (first present name wins; the text part's own fields before
/// the outer ones) and notes what was assumed.
class Reader {
 public:
  using Names = Fields::Names;

  /// `text` is `root` itself, or the nested config of the language model.
  Reader(const Fields& root, const Fields& text, Model& model) : root_(root), text_(text), model_(model) {}

  const Fields& root() const { return root_; }
  const Fields& text() const { return text_; }
  bool nested() const { return &root_.document() != &text_.document(); }
  Model& model() const { return model_; }
  /// Notes an assumption: a message of base/messages/model.def and its parts.
  void assume(std::string id, std::vector<std::pair<std::string, std::string>> args = {}) const {
    model_.assume({std::move(id), std::move(args)});
  }
  void not_given(std::string field, std::string value) const {
    assume("model.assume.not_given", {{"field", std::move(field)}, {"value", std::move(value)}});
  }

  int64_t size(Names names, int64_t high = kMaxWidth) const { return text_.required_integer(names, {1, high}); }
  int64_t size_or(Names names, int64_t fallback, int64_t high = kMaxWidth) const {
    return text_.integer_or(names, fallback, {1, high});
  }
  /// As size_or, 0 allowed.
  int64_t count_or(Names names, int64_t fallback, int64_t high = kMaxWidth) const {
    return text_.integer_or(names, fallback, {0, high});
  }
  bool flag(Names names, bool fallback) const { return text_.boolean_or(names, fallback); }
  std::string word(Names names, std::string fallback) const { return text_.string_or(names, std::move(fallback)); }
  double rate(Names names, double fallback) const { return text_.real(names, 0, 1).value_or(fallback); }

  int64_t hidden() const;
  int64_t layers() const;
  int64_t heads() const;
  /// Divides `heads`; `heads` where absent.
  int64_t kv_heads(int64_t heads) const;
  int64_t head_dim(int64_t hidden, int64_t heads) const;
  int64_t ffn(int64_t fallback = 0) const;
  int64_t vocab() const;
  int64_t positions() const;
  bool tied(bool class_default) const;
  std::string activation(std::string_view fallback) const;
  /// All of the above; ffn_fallback as a multiple of hidden (0: the field is required).
  Sizes sizes(int64_t ffn_multiple = 0) const;

  /// A list with one entry a layer (entries beyond the layers, for MTP layers, are allowed); nullopt where absent.
  std::optional<std::vector<std::string>> layer_words(Names names, int64_t layers) const;
  std::optional<std::vector<int64_t>> layer_numbers(Names names, int64_t layers, Range range = {0, kMaxWidth}) const;
  /// layer_types as attention kinds; `fallback(i)` where the config has no such list.
  template <class F>
  std::vector<AttentionKind> attention_kinds(int64_t layers, F fallback) const {
    std::vector<AttentionKind> kinds;
    kinds.reserve(static_cast<size_t>(layers));
    const auto words = layer_words({"layer_types"}, layers);
    for (int64_t i = 0; i < layers; ++i) {
      kinds.push_back(words ? attention_kind((*words)[static_cast<size_t>(i)]) : fallback(i));
    }
    return kinds;
  }
  AttentionKind attention_kind(const std::string& word) const;

  /// Grouped-query attention of `sizes`.
  Attention attention(const Sizes& sizes) const;
  Mlp gated(const Sizes& sizes, std::string_view activation = "silu") const;
  Mlp plain(const Sizes& sizes, std::string_view activation = "gelu") const;
  /// Experts, checked: experts_per_token does not exceed experts.
  Mlp moe(Names experts, Names per_token, Names expert_ffn, std::string_view activation = "silu") const;
  void dropouts(LayerKind& kind, double attention_default = 0, double hidden_default = 0) const;

  /// A decoder of the Llama kind with these sizes: RMSNorm before attention and before a gated MLP.
  Decoder decoder(const Sizes& sizes, bool tied_default = false) const;

 private:
  const Fields& root_;
  const Fields& text_;
  Model& model_;
};

}  // namespace vram::arch
