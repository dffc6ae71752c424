#pragma once

#include <cstdint>
#include <vector>

#include "training/plan.h"

namespace vram {

/// One pass of one micro-batch through one chunk (virtual stage) of a rank.
struct Pass {
  bool forward = true;
  int64_t chunk = 0;
  int64_t micro_batch = 0;
};

/// The static order of passes on a rank. 1F1B: Narayanan et al. 2021 (arXiv 2104.04473) section 2.2; interleaved as
/// Megatron-Core schedules.py runs it (groups of `pp` micro-batches a chunk); GPipe: all forwards, then all backwards.
std::vector<Pass> pass_order(Schedule schedule, int64_t pp, int64_t vpp, int64_t micro_batches, int64_t rank);

/// A moment at which a rank can be at its peak: what is in flight when a pass begins.
struct Moment {
  bool forward = true;
  int64_t chunk = 0;
  bool first_backward = false;     ///< of this chunk in the step: its gradients appear during the pass
  std::vector<int64_t> in_flight;  ///< micro-batches kept for backward, by chunk
  std::vector<bool> gradients;     ///< chunks whose gradients exist already
};

/// Every moment that no other moment of the same pass kind dominates, per rank. Depends on the schedule only, so a
/// search prepares it once.
struct ScheduleShape {
  std::vector<std::vector<Moment>> ranks;
};
ScheduleShape schedule_shape(Schedule schedule, int64_t pp, int64_t vpp, int64_t micro_batches);

/// Most chunks of a rank, and most virtual stages of a pipeline: far beyond any that runs, and small enough that every
/// rank's order of passes can be looked at.
inline constexpr int64_t kMaxChunks = 64, kMaxVirtualStages = 512;

/// The micro-batches after which an order only repeats moments that it had before: all the peaks of a step lie in a
/// step of this many. GPipe keeps every micro-batch, so there it is all of them.
int64_t telling_micro_batches(Schedule schedule, int64_t pp, int64_t micro_batches);

}  // namespace vram
