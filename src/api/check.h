#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/claim.h"
#include "api/fit.h"
#include "api/resolve.h"
#include "base/document.h"
#include "base/error.h"

namespace vram {

enum class Verdict : uint8_t { is_true, is_false, doubtful };
std::string_view verdict_name(Verdict verdict);  ///< "true", "false", "doubtful"

/// One way to read a capacity claim, with its account.
struct CheckReading {
  std::string id;         ///< full, offload, lora, qlora, serving, quantized_serving
  std::string precision;  ///< of the weights, for serving: "bf16", "int4"
  FitRow row;             ///< as `fit` answers it
  Verdict holds = Verdict::is_false;
  bool claimed = false;  ///< what the claim says
};

/// An amount as it is, and whether it is the claimed one.
struct CheckAmount {
  std::string id;  ///< message "check.amount.<id>"
  std::vector<std::pair<std::string, std::string>> args;
  Bytes bytes = 0;
  bool matches = false;
  bool binary = false;  ///< "16 GB" was written for 16 GiB
  std::string command;
};

struct CheckAnswer {
  Claim claim;
  Verdict verdict = Verdict::is_false;
  std::vector<Note> reasons;  ///< why it is doubtful, or what else is to know
  // capacity
  std::optional<Model> model;  ///< with layers; the stand-in's where the claim names a size only
  std::string stand_in;        ///< catalogue id; empty: none
  std::optional<Machine> machine;
  Bytes usable = 0;
  int64_t sequence = 0, context = 0;
  std::vector<CheckReading> readings;
  Bytes states = 0, states_per_card = 0;  ///< of full-parameter training, before any activation; 0: not asked
  // amount
  std::vector<CheckAmount> amounts;
  std::optional<double> times;  ///< optimizer states over weights, where the claim names a ratio
  // concept
  std::string truth_en, truth_zh;
  std::vector<std::string> commands;  ///< to see the figures

  Exit exit() const { return verdict == Verdict::is_true ? Exit::yes : Exit::no; }
  const CheckReading* claimed() const;
  std::vector<std::string> assumed(Lang lang) const;
};

/// Whether the claim is true. Full-parameter training without offload is meant by "trains" unless it says otherwise.
/// InputError where the claim is not of the forms of data/claims.toml.
CheckAnswer answer_check(std::string_view claim, const Knowledge& knowledge);

Document to_json(const CheckAnswer& answer);
/// The forms of claims that are understood, and the claims about how memory works.
Document to_json(const ClaimBook& book);

}  // namespace vram
