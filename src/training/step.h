#pragma once

#include <vector>

#include "catalog/constant.h"
#include "ledger/ledger.h"
#include "machine/machine.h"
#include "training/plan.h"
#include "training/schedule.h"
#include "training/states.h"

namespace vram {

/// What does not depend on the number type: the device's overheads, as data rows.
struct Overheads {
  std::vector<Constant> context;        ///< per process: driver context, libraries
  std::vector<Constant> workspace;      ///< inside the allocator: cuBLAS and the like
  std::vector<Constant> communication;  ///< communicators and buckets
};
/// The rows that apply to a plan on a device; nothing in textbook mode or on memory-only machines.
Overheads overheads(const Plan& plan, const Device* device, const Constants& constants);

/// One training step of one pipeline rank as a program: states, then every pass of the schedule, then the optimizer.
/// Steady state: the optimizer's states exist. The peak of the program is the peak of the rank.
template <Number N>
Program<N> step_program(const Model& model, const Plan& plan, const Overheads& overheads, int64_t rank);

/// Micro-batches that step_program writes down. Fewer than the plan's where a step is so long that it only repeats
/// itself; the peak and its moment are the same.
int64_t written_micro_batches(const Plan& plan);

/// Sizes of the blocks of a plan in terms of N, shared by the program and the closed form.
template <Number N>
Dims<N> dims_of(const Plan& plan);
LayerOptions layer_options(const Plan& plan);

// --- the closed form: the same numbers without building a program ---

/// One layer kind on one rank, priced once per (tp, cp, ep, etp, micro-batch, precision, recompute).
struct LayerPrice {
  Summary forward, backward, backward_first;  ///< backward_first: gradients appear during it
  Bytes gradients = 0;                        ///< what backward_first leaves behind
  double forward_flops = 0;
};

/// Everything that composition needs besides the schedule, for one pipeline.
struct StepTables {
  std::vector<LayerPrice> kinds;  ///< by model.layer_kind
  LayerPrice embedding, head;
  Bytes hidden = 0;  ///< the residual stream between stages
  bool input_kept = false;
  struct Rank {
    Bytes states = 0;  ///< alive all the time: states, context, workspace
    Bytes step = 0;    ///< on top during the optimizer step
    struct Run {
      int32_t kind;
      int32_t count;
    };
    std::vector<std::vector<Run>> chunks;  ///< runs of equal layers, by chunk
  };
  std::vector<Rank> ranks;
};
StepTables step_tables(const Model& model, const Plan& plan, const Overheads& overheads);

/// Device peaks of every pipeline rank, written to `peaks` (size pp). Equal to the program's. No allocation. Throws
/// OverflowError.
void compose(const StepTables& tables, const ScheduleShape& shape, Bytes* peaks);

}  // namespace vram
