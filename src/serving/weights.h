#pragma once

#include <string>
#include <vector>

#include "ledger/number.h"
#include "serving/plan.h"

namespace vram {

/// The part of the model that a weight belongs to; reports group by it.
enum class Part : uint8_t { embedding, head, attention, mixer, mlp, experts, norms, other, vision, audio, all };
std::string_view part_name(Part part);  ///< "embedding", "head", ...

/// One kind of weight tensor on one rank.
template <Number N>
struct WeightLine {
  std::string name;  ///< of the tensor, "{layer}" for the index
  Part part = Part::other;
  int64_t count = 1;                           ///< layers of the stage times experts of the rank
  N each{0};                                   ///< bytes of one
  double elements = 0;                         ///< of one, on this rank
  bool multiplied = false;                     ///< a matrix that every token passes through
  bool routed = false;                         ///< of a routed expert
  int64_t experts = 0, experts_per_token = 0;  ///< of its layer, where routed
  bool read = false;                           ///< read whole in a decode step
};

/// The weights that a rank of this class loads: no MTP layers, buffers or copies; a tied table once a rank. Vocabulary
/// rows are padded; what doesn't divide evenly is counted on the larger side.
template <Number N>
std::vector<WeightLine<N>> weights_of_rank(const ServePlan& plan, const RankClass& rank);

/// All weights of the model, once, by size: as given, or parameters times the bytes of the scheme.
template <Number N>
N weights_by_size(const ServePlan& plan);

/// The bytes of one number of `scheme` in units of 1/8 for models known by size; InputError for unknown schemes.
void check_size_scheme(const std::string& scheme);

}  // namespace vram
