// Contradictions inside a job that no model or machine is needed to see.
#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "job/job.h"

namespace vram {
namespace {

[[noreturn]] void refuse(std::string_view field, std::string value, std::string problem, std::string accepted = {}) {
  throw InputError({.field = option_name(field),
                    .value = std::move(value),
                    .problem = std::move(problem),
                    .accepted = std::move(accepted)});
}

std::string text_of(int64_t v) { return fmt::format("{}", v); }

// The ZeRO stage that a sharding word stands for.
int64_t stage_of(std::string_view sharding) {
  if (sharding == "ddp") return 0;
  if (sharding == "zero1" || sharding == "distributed_optimizer") return 1;
  if (sharding == "zero2") return 2;
  return 3;
}

std::string_view shardings_of(int64_t stage) {
  switch (stage) {
    case 0:
      return "ddp";
    case 1:
      return "zero1 or distributed_optimizer";
    case 2:
      return "zero2";
    default:
      return "zero3 or fsdp";
  }
}

void check_model(const Job& j) {
  if (j.heads && j.kv_heads && *j.heads % *j.kv_heads != 0) {
    refuse("kv_heads", text_of(*j.kv_heads), fmt::format("does not divide the {} query heads", *j.heads));
  }
  if (j.hidden && j.heads && !j.head_dim && *j.hidden % *j.heads != 0) {
    refuse("heads", text_of(*j.heads), fmt::format("does not divide the hidden size {}", *j.hidden),
           "a divisor of it, or --head-dim");
  }
  if (j.experts_per_token && !j.experts) {
    refuse("experts_per_token", text_of(*j.experts_per_token), "needs --experts, the number it chooses from");
  }
  if (j.experts_per_token && j.experts && *j.experts_per_token > *j.experts) {
    refuse("experts_per_token", text_of(*j.experts_per_token), fmt::format("exceeds --experts {}", *j.experts));
  }
  if (j.expert_parallel && j.experts && *j.experts % *j.expert_parallel != 0) {
    refuse("expert_parallel", text_of(*j.expert_parallel), fmt::format("does not divide the {} experts", *j.experts));
  }
}

void check_pipeline(const Job& j) {
  const int64_t stages = j.pipeline_parallel.value_or(1);
  const int64_t chunks = j.virtual_pipeline.value_or(1);
  if (j.schedule && *j.schedule == "interleaved" && chunks < 2) {
    refuse("schedule", *j.schedule, "needs --virtual-pipeline of 2 or more");
  }
  if (chunks > 1) {
    if (stages < 2) {
      refuse("virtual_pipeline", text_of(chunks), "needs --pipeline-parallel of 2 or more");
    }
    if (j.schedule && *j.schedule != "interleaved") {
      refuse("virtual_pipeline", text_of(chunks), fmt::format("contradicts --schedule {}", *j.schedule),
             "--schedule interleaved");
    }
  }
}

void check_sharding(const Job& j) {
  if (j.zero && j.sharding && stage_of(*j.sharding) != *j.zero) {
    refuse("zero", text_of(*j.zero), fmt::format("contradicts --sharding {}", *j.sharding),
           std::string(shardings_of(*j.zero)) + " with this stage");
  }
  if (j.hybrid_shard) {
    // Stage 1 as well: Megatron-Core's several instances of the distributed optimizer.
    if ((j.zero && *j.zero == 0) || (j.sharding && stage_of(*j.sharding) == 0)) {
      refuse("hybrid_shard", text_of(*j.hybrid_shard), "divides states and needs --zero 1, 2 or 3");
    }
    if (j.data_parallel && *j.data_parallel % *j.hybrid_shard != 0) {
      refuse("hybrid_shard", text_of(*j.hybrid_shard),
             fmt::format("does not divide --data-parallel {}", *j.data_parallel));
    }
  }
}

void check_states(const Job& j) {
  const bool no_master = j.precision && (*j.precision == "fp32" || *j.precision == "bf16_pure");
  if (no_master && j.master_weights && *j.master_weights) {
    refuse("master_weights", "true", fmt::format("contradicts --precision {}", *j.precision),
           *j.precision == "fp32" ? "false: the weights are fp32 themselves" : "--precision bf16");
  }
  if (j.precision && *j.precision == "fp32" && j.gradient_dtype && *j.gradient_dtype != "fp32") {
    refuse("gradient_dtype", *j.gradient_dtype, "contradicts --precision fp32", "fp32");
  }
  for (const std::string& what : j.offload) {
    if (what == "optimizer" && j.optimizer && *j.optimizer == "none") {
      refuse("offload", what, "contradicts --optimizer none");
    }
  }
  if (j.task && (*j.task == "full" || *j.task == "pretrain")) {
    const std::string problem = fmt::format("has no meaning with --task {}", *j.task);
    if (j.lora_rank) refuse("lora_rank", text_of(*j.lora_rank), problem, "--task lora or qlora");
    if (!j.lora_targets.empty()) refuse("lora_targets", j.lora_targets.front(), problem, "--task lora or qlora");
    if (j.lora_dtype) refuse("lora_dtype", *j.lora_dtype, problem, "--task lora or qlora");
  }
}

void check_batch(const Job& j) {
  if (!j.global_batch) return;
  const int64_t micro = j.micro_batch.value_or(1);
  const int64_t ranks = j.data_parallel.value_or(1);
  const int64_t rounds = j.gradient_accumulation.value_or(1);
  int64_t unit = checked_mul(checked_mul(micro, ranks), rounds);
  if (j.gradient_accumulation && j.data_parallel && *j.global_batch != unit) {
    refuse("global_batch", text_of(*j.global_batch),
           fmt::format("is not micro-batch {} x data-parallel {} x gradient accumulation {} = {}", micro, ranks, rounds,
                       unit),
           text_of(unit));
  }
  if (*j.global_batch % unit != 0) {
    refuse("global_batch", text_of(*j.global_batch),
           fmt::format("is not a multiple of micro-batch {} x data-parallel {} x gradient accumulation {} = {}", micro,
                       ranks, rounds, unit));
  }
}

void check_serving(const Job& j) {
  const int reserves = (j.reserve ? 1 : 0) + (j.reserve_total ? 1 : 0) + (j.reserve_ratio ? 1 : 0);
  if (reserves > 1) {
    const bool ratio = j.reserve_ratio.has_value();
    refuse(ratio ? "reserve_ratio" : "reserve_total",
           ratio ? fmt::format("{:g}", *j.reserve_ratio) : text_of(*j.reserve_total), "is a second reserve",
           "one of --reserve, --reserve-total and --reserve-ratio");
  }
}

}  // namespace

void check_job(const Job& job) {
  check_model(job);
  check_pipeline(job);
  check_sharding(job);
  check_states(job);
  check_batch(job);
  check_serving(job);
}

}  // namespace vram
