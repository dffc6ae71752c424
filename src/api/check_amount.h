#pragma once

#include <optional>
#include <string>

#include "api/check.h"

namespace vram {

/// The model of a claim. A size has no layers of its own: those of a stand-in, else of a decoder by hand, are taken.
struct ClaimModel {
  Model model;
  std::optional<Model> bare;  ///< of the claimed size, without layers; absent where the claim names a model
  std::string stand_in;       ///< catalogue id; empty: none
  std::string name;           ///< the model as a job names it
  bool by_hand = false;
  void describe(Job& job) const;
};
ClaimModel model_of_claim(const Claim& claim, const Knowledge& knowledge);

/// Answers a claim about an amount of memory.
void answer_amount(CheckAnswer& answer, const ClaimModel& model, const Knowledge& knowledge);

/// Whether `bytes` is what "16 GB" says: within half of its last digit or 1.5 %. People write GB for GiB too: `binary`
/// tells that only that reading holds.
bool amount_matches(const std::string& amount, Bytes bytes, bool& binary);

/// The command that answers a job: "vram serve 7B --on 1xH100".
std::string command_of(const std::string& verb, const Job& job);

}  // namespace vram
