#pragma once

#include <optional>
#include <vector>

#include "serving/cache.h"
#include "serving/plan.h"

namespace vram {

/// One growing part of a request's cache, ready for the closed form.
struct PreparedPart {
  Bytes per_entry = 0;
  int64_t cap = 0;
  int64_t every = 1;
  bool spills = false;
};

/// A class of ranks reduced to the few numbers that capacity depends on.
struct PreparedRank {
  Bytes memory = 0;  ///< usable bytes of the card (of all pooled cards in textbook mode)
  Bytes weights = 0;
  Bytes reserved = 0;  ///< everything but weights and caches
  Bytes state = 0;     ///< of one request, whatever its length
  std::vector<PreparedPart> parts;

  /// What is left for caches; negative where weights and reserve alone exceed the card.
  Bytes room() const { return memory - weights - reserved; }
  /// Throws OverflowError.
  Bytes request_bytes(int64_t context, int64_t block) const;
};

/// The tables behind one plan: made once, asked often. Pure data; `ranks` is in step with `classes`.
struct Prepared {
  std::vector<RankClass> classes;
  std::vector<PreparedRank> ranks;
  int64_t replicas = 1;
  int64_t block = 1;
};
/// Throws OverflowError where a size leaves int64.
Prepared prepare(const ServePlan& plan);

/// Stands for "as many as you like", where a request takes no memory.
inline constexpr int64_t kUnlimited = int64_t{1} << 50;

/// Requests of `context` tokens that run at once over all replicas (K); kUnlimited where a request takes nothing; 0
/// where the weights don't fit.
int64_t largest_concurrency(const Prepared& prepared, int64_t context);

/// Tokens that each of `requests` requests (over all replicas) may have; 0 where even one token doesn't fit, `limit`
/// where memory allows at least that.
int64_t longest_context(const Prepared& prepared, int64_t requests, int64_t limit);

/// What is left on the fullest rank with `requests` requests of `context` tokens; negative: what is missing.
Bytes room_left(const Prepared& prepared, int64_t context, int64_t requests);

/// The rank that limits K at this context: an index into `ranks`.
size_t tightest_rank(const Prepared& prepared, int64_t context);

}  // namespace vram
