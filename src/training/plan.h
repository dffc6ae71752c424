#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/constant.h"
#include "job/job.h"
#include "machine/machine.h"
#include "model/model.h"
#include "training/rules.h"

namespace vram {

enum class Task : uint8_t { pretrain, full, lora, qlora };
enum class Precision : uint8_t { fp32, bf16, fp16, bf16_pure, fp8 };
enum class Optimizer : uint8_t { adamw, adamw8bit, sgd, sgd_momentum, adafactor, lion, muon, none };
enum class Schedule : uint8_t { one_f_one_b, interleaved, gpipe };

std::string_view task_name(Task);
std::string_view precision_name(Precision);
std::string_view optimizer_name(Optimizer);
std::string_view schedule_name(Schedule);
std::string_view recompute_name(Recompute);
std::string_view loss_name(KernelChoice::Loss);

/// A training job with every field decided. Groups multiply: cards = tp * cp * pp * dp, and experts live on
/// ep * etp ranks out of tp * cp * dp.
struct Plan {
  Task task = Task::pretrain;
  Precision precision = Precision::bf16;
  Optimizer optimizer = Optimizer::adamw;
  Rules rules;
  int64_t sequence = 4096, micro_batch = 1, micro_batches = 1;  ///< micro_batches: per step and pipeline
  int64_t tp = 1, cp = 1, pp = 1, vpp = 1, ep = 1, etp = 1, dp = 1;
  bool sequence_parallel = false;
  Schedule schedule = Schedule::one_f_one_b;
  bool experts = false;  ///< the model has routed experts
  int64_t zero = 0;
  int64_t shard_group = 1;  ///< ranks over which ZeRO divides: dp * cp, or the hybrid shard group
  Recompute recompute = Recompute::none;
  bool flash = true;
  double hidden_dropout = 0, attention_dropout = 0;
  bool offload_optimizer = false, offload_gradients = false, offload_parameters = false;
  Adapters adapters;
  bool textbook = false;
  // Bytes of one parameter.
  int64_t weight_bytes = 2, gradient_bytes = 2, gradient_copy_bytes = 0, master_bytes = 4, moment_bytes = 4;
  int64_t element_bytes = 2;
  std::vector<Note> assumptions;  ///< what the job did not say, one clause each

  int64_t cards() const { return tp * cp * pp * dp; }
  int64_t expert_dp() const { return tp * cp * dp / (ep * etp); }
  bool frozen() const { return task == Task::lora || task == Task::qlora; }
};

/// Decides every field. InputError names the option, its value and what is accepted here: groups that do not multiply
/// to the machine's cards, heads that tensor parallelism does not divide, layers the pipeline does not divide, and so
/// on. A machine of memory only is allowed. `machine` null: as many cards as the parallel sizes say.
Plan resolve_plan(const Model& model, const Machine* machine, const Job& job, const Rules& rules);

/// Layers of every virtual stage: stages[rank][chunk] = {first layer, count}. Uneven layers go to the earlier stages
/// when there is one chunk a rank; several chunks must divide (Megatron-Core requires it).
struct StageLayers {
  int64_t first = 0, count = 0;
};
std::vector<std::vector<StageLayers>> stage_layers(int64_t layers, const Plan& plan);
/// The same of one rank.
std::vector<StageLayers> rank_layers(int64_t layers, const Plan& plan, int64_t rank);

}  // namespace vram
