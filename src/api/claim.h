#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/messages.h"
#include "machine/machine.h"

namespace vram {

/// How a claim says that cards are needed.
enum class Need : uint8_t {
  none,     ///< it says that they do: "70B trains on 4x80GB"
  plain,    ///< "needs 4 cards"
  only,     ///< "needs only 4 cards": they suffice
  at_least  ///< "needs at least 4 cards": fewer do not suffice
};

/// A sentence of data/claims.toml, taken apart.
struct Claim {
  std::string text;  ///< as given
  enum class Kind : uint8_t { capacity, amount, concept_row } kind = Kind::capacity;
  // concept_row
  size_t row = 0;      ///< index into ClaimBook::concepts
  bool right = false;  ///< what is said is the correct statement itself
  // capacity and amount
  std::string model;       ///< catalogue id, or a size: "70B"
  bool size_only = false;  ///< `model` is a size
  bool negated = false;    ///< "can't", "does not"
  Need need = Need::none;
  int64_t nodes = 0, count = 0;  ///< 0 nodes: not said
  std::string device;            ///< "H100", "80GB"
  std::string task;              ///< full, pretrain, tune, lora, qlora, serve, run; empty: not said
  std::string offload;           ///< yes, optimizer, everything, no; empty: not said
  std::string bits;              ///< int4, int8, fp8, bf16, fp32, any; empty: not said
  std::optional<std::string> optimizer, recompute;
  std::optional<int64_t> context, users, zero, micro_batch;
  // amount
  std::string quantity;         ///< kv, kv_token, weights, gradients, optimizer, moments, states
  std::string amount_text;      ///< "16 GB"
  std::optional<double> times;  ///< "4x the weights"

  /// "4x80GB", with another number of cards where `cards` is given.
  std::string machine() const;
};

/// One claim about how memory works, with what is true of it.
struct ConceptClaim {
  /// A figure of an answer, computed when the claim is answered.
  struct Figure {
    std::string name;  ///< stands in the texts as {name}
    std::string verb;
    Document job;                    ///< as a job file; null: none
    std::vector<std::string> words;  ///< search words of gpus and models
    std::string path;                ///< "states_whole_model.total_bytes" in the verb's JSON
    std::string unit;                ///< GiB, GB, count, number
  };
  std::string id;       ///< "kv-grows-linearly"
  std::string verdict;  ///< "false" or "doubtful"
  std::string claim_en, claim_zh;
  std::string truth_en, truth_zh;
  std::string source;
  std::vector<Figure> figures;
};

/// A form of sentence that is understood.
struct ClaimForm {
  std::string id, kind, shows_en, shows_zh, example_en, example_zh;
};

/// What data/claims.toml holds besides the grammar.
struct ClaimBook {
  std::vector<ClaimForm> forms;
  std::vector<ConceptClaim> concepts;
  /// Whose layers and heads stand for a model that is named by its size alone.
  struct StandIn {
    int64_t size = 0;
    std::string model;  ///< catalogue id
  };
  std::vector<StandIn> stand_ins;
  static const ClaimBook& builtin();
};

/// The claim that `text` makes. InputError for anything that no pattern of data/claims.toml is, with the nearest form
/// and examples; never a guess.
Claim parse_claim(std::string_view text, const Devices& devices);

}  // namespace vram
