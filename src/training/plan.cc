#include "training/plan.h"

#include <fmt/format.h>

#include "base/error.h"
#include "training/schedule.h"

namespace vram {

std::string_view task_name(Task t) {
  switch (t) {
    case Task::pretrain:
      return "pretrain";
    case Task::full:
      return "full";
    case Task::lora:
      return "lora";
    case Task::qlora:
      return "qlora";
  }
  return "?";
}

std::string_view precision_name(Precision p) {
  switch (p) {
    case Precision::fp32:
      return "fp32";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
    case Precision::bf16_pure:
      return "bf16_pure";
    case Precision::fp8:
      return "fp8";
  }
  return "?";
}

std::string_view optimizer_name(Optimizer o) {
  switch (o) {
    case Optimizer::adamw:
      return "adamw";
    case Optimizer::adamw8bit:
      return "adamw8bit";
    case Optimizer::sgd:
      return "sgd";
    case Optimizer::sgd_momentum:
      return "sgd_momentum";
    case Optimizer::adafactor:
      return "adafactor";
    case Optimizer::lion:
      return "lion";
    case Optimizer::muon:
      return "muon";
    case Optimizer::none:
      return "none";
  }
  return "?";
}

std::string_view schedule_name(Schedule s) {
  switch (s) {
    case Schedule::one_f_one_b:
      return "1f1b";
    case Schedule::interleaved:
      return "interleaved";
    case Schedule::gpipe:
      return "gpipe";
  }
  return "?";
}

std::string_view loss_name(KernelChoice::Loss loss) {
  using Loss = KernelChoice::Loss;
  switch (loss) {
    case Loss::upcast:
      return "upcast";
    case Loss::plain:
      return "plain";
    case Loss::vocab_parallel:
      return "vocab_parallel";
    case Loss::vocab_parallel_compiled:
      return "vocab_parallel_compiled";
    case Loss::fused:
      return "fused";
  }
  return "?";
}

std::string_view recompute_name(Recompute r) {
  switch (r) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::full:
      return "full";
  }
  return "?";
}

namespace {

[[noreturn]] void refuse(std::string field, std::string value, std::string problem, std::string accepted = {}) {
  throw InputError({.field = std::move(field),
                    .value = std::move(value),
                    .problem = std::move(problem),
                    .accepted = std::move(accepted)});
}

std::string divisors(int64_t n, int64_t limit) {
  std::string out;
  int shown = 0;
  for (int64_t d = 1; d <= std::min(n, limit) && shown < 12; ++d) {
    if (n % d == 0) {
      out += (out.empty() ? "" : ", ") + fmt::format("{}", d);
      ++shown;
    }
  }
  return out;
}

template <class E>
E word(const std::optional<std::string>& text, std::string_view field, std::initializer_list<E> all,
       std::string_view (*name)(E), E fallback) {
  if (!text) return fallback;
  std::string accepted;
  for (E e : all) {
    if (name(e) == *text) return e;
    accepted += (accepted.empty() ? "" : ", ") + std::string(name(e));
  }
  refuse("--" + std::string(field), *text, "is not known", accepted);
}

int64_t query_heads(const Model& model) {
  int64_t heads = 0;
  for (const LayerKind& kind : model.kinds) {
    if (kind.attention.kind == AttentionKind::none) continue;
    if (kind.attention.heads > 0) heads = heads == 0 ? kind.attention.heads : std::min(heads, kind.attention.heads);
  }
  return heads;
}

void resolve_precision(const Job& job, const Rules& rules, Plan& plan) {
  plan.precision =
      word<Precision>(job.precision, "precision",
                      {Precision::fp32, Precision::bf16, Precision::fp16, Precision::bf16_pure, Precision::fp8},
                      precision_name, Precision::bf16);
  if (!job.precision) plan.assumptions.push_back({"train.assume.precision", {}});
  plan.optimizer = word<Optimizer>(job.optimizer, "optimizer",
                                   {Optimizer::adamw, Optimizer::adamw8bit, Optimizer::sgd, Optimizer::sgd_momentum,
                                    Optimizer::adafactor, Optimizer::lion, Optimizer::muon, Optimizer::none},
                                   optimizer_name, Optimizer::adamw);
  if (!job.optimizer) plan.assumptions.push_back({"train.assume.optimizer", {}});
  switch (plan.precision) {
    case Precision::fp32:
      plan.weight_bytes = plan.gradient_bytes = plan.element_bytes = plan.moment_bytes = 4;
      plan.master_bytes = 0;
      break;
    case Precision::bf16_pure:
      plan.weight_bytes = plan.gradient_bytes = plan.element_bytes = plan.moment_bytes = 2;
      plan.master_bytes = 0;
      break;
    default:
      plan.weight_bytes = plan.element_bytes = 2;
      plan.gradient_bytes = rules.gradient_bytes;
      plan.master_bytes = plan.moment_bytes = 4;
      break;
  }
  const bool mixed = plan.precision != Precision::fp32 && plan.precision != Precision::bf16_pure;
  if (rules.weight_is_master && mixed) {
    plan.weight_bytes = 4;
    plan.master_bytes = 0;
  }
  if (job.master_weights) {
    if (*job.master_weights && !mixed) {
      refuse("--master-weights", "true",
             fmt::format("has no meaning with precision {}", precision_name(plan.precision)),
             "bf16, fp16 or fp8 precision");
    }
    if (mixed) {
      plan.master_bytes = *job.master_weights ? 4 : 0;
      if (rules.weight_is_master) plan.weight_bytes = *job.master_weights ? 4 : 2, plan.master_bytes = 0;
    }
  }
  if (job.moment_dtype) {
    const std::string& moment = *job.moment_dtype;
    if (plan.optimizer == Optimizer::adamw8bit || plan.optimizer == Optimizer::adafactor) {
      refuse("--moment-dtype", moment, fmt::format("has no meaning with optimizer {}", optimizer_name(plan.optimizer)),
             "adamw, lion, muon, sgd_momentum");
    }
    if (moment == "fp32")
      plan.moment_bytes = 4;
    else if (moment == "bf16" || moment == "fp16")
      plan.moment_bytes = 2;
    else
      refuse("--moment-dtype", moment, "is not known", "fp32, bf16, fp16");
  }
  if (job.gradient_dtype) {
    const std::string& g = *job.gradient_dtype;
    if (g == "fp32")
      plan.gradient_bytes = 4;
    else if (g == "bf16" || g == "fp16")
      plan.gradient_bytes = 2;
    else if (g == "both")
      plan.gradient_bytes = 2, plan.gradient_copy_bytes = 4;
    else
      refuse("--gradient-dtype", g, "is not known", "fp32, bf16, fp16, both");
  }
}

void resolve_groups(const Model& model, const Machine* machine, const Job& job, Plan& plan) {
  const Rules& rules = plan.rules;
  plan.tp = job.tensor_parallel.value_or(1);
  plan.cp = job.context_parallel.value_or(1);
  plan.pp = job.pipeline_parallel.value_or(1);
  plan.vpp = job.virtual_pipeline.value_or(1);
  plan.ep = job.expert_parallel.value_or(1);
  // Without expert parallelism experts are cut by tensor parallelism like every other matrix.
  plan.etp = job.expert_tensor_parallel.value_or(plan.ep == 1 || rules.etp_follows_tp ? plan.tp : 1);
  if (model.shape_known) {
    const int64_t heads = query_heads(model);
    if (heads > 0 && (plan.tp > heads || heads % plan.tp != 0)) {
      refuse("--tensor-parallel", fmt::format("{}", plan.tp),
             fmt::format("does not divide the {} query heads of {}", heads, model.name),
             divisors(heads, machine ? machine->cards() : 1024));
    }
  }
  const int64_t model_parallel = plan.tp * plan.cp * plan.pp;
  if (machine) {
    const int64_t cards = machine->cards();
    if (cards % model_parallel != 0) {
      refuse(plan.tp > 1   ? "--tensor-parallel"
             : plan.pp > 1 ? "--pipeline-parallel"
                           : "--context-parallel",
             fmt::format("{}", plan.tp > 1   ? plan.tp
                               : plan.pp > 1 ? plan.pp
                                             : plan.cp),
             fmt::format("makes tp·cp·pp = {}·{}·{} = {}, which does not divide the {} cards of {}", plan.tp, plan.cp,
                         plan.pp, model_parallel, cards, machine->text),
             "sizes whose product divides the cards");
    }
    plan.dp = job.data_parallel.value_or(cards / model_parallel);
    if (plan.dp * model_parallel != cards) {
      refuse("--data-parallel", fmt::format("{}", plan.dp),
             fmt::format("gives tp·cp·pp·dp = {}·{}·{}·{} = {} devices, but {} has {}", plan.tp, plan.cp, plan.pp,
                         plan.dp, plan.dp * model_parallel, machine->text, cards),
             fmt::format("{}", cards / model_parallel));
    }
  } else {
    plan.dp = job.data_parallel.value_or(1);
  }
  if (model.shape_known) {
    if (plan.pp * plan.vpp > model.layers()) {
      refuse("--pipeline-parallel", fmt::format("{}", plan.pp),
             fmt::format("with {} virtual stages each needs more layers than the {} of {}", plan.vpp, model.layers(),
                         model.name),
             fmt::format("at most {}", model.layers() / plan.vpp));
    }
    if (plan.vpp > 1 && model.layers() % (plan.pp * plan.vpp) != 0) {
      refuse("--virtual-pipeline", fmt::format("{}", plan.vpp),
             fmt::format("times {} stages does not divide the {} layers", plan.pp, model.layers()),
             divisors(std::max<int64_t>(1, model.layers() / plan.pp), 64));
    }
  }
  if (plan.vpp > kMaxChunks || plan.pp * plan.vpp > kMaxVirtualStages) {
    const int64_t most = std::min(kMaxChunks, std::max<int64_t>(1, kMaxVirtualStages / plan.pp));
    if (plan.vpp > 1) {
      refuse("--virtual-pipeline", fmt::format("{}", plan.vpp),
             fmt::format("times {} stages is more than {} virtual stages", plan.pp, kMaxVirtualStages),
             fmt::format("at most {}", most));
    }
    refuse("--pipeline-parallel", fmt::format("{}", plan.pp), "is too many stages",
           fmt::format("at most {}", kMaxVirtualStages));
  }
  if (plan.vpp > 1 && plan.pp < 2) {
    refuse("--virtual-pipeline", fmt::format("{}", plan.vpp), "needs pipeline_parallel of at least 2", "1");
  }
  // Experts.
  int64_t experts = 0;
  for (const LayerKind& kind : model.kinds) experts = std::max(experts, kind.mlp.experts);
  plan.experts = experts > 0;
  if (plan.ep > 1 && experts == 0) {
    refuse("--expert-parallel", fmt::format("{}", plan.ep),
           fmt::format("needs a mixture of experts; {} is dense", model.name), "1");
  }
  const int64_t pool = plan.tp * plan.cp * plan.dp;
  if (pool % (plan.ep * plan.etp) != 0) {
    refuse("--expert-parallel", fmt::format("{}", plan.ep),
           fmt::format("times expert_tensor_parallel {} does not divide its group of tp·cp·dp = {}", plan.etp, pool),
           divisors(std::max<int64_t>(1, pool / plan.etp), 4096));
  }
  if (experts > 0 && experts % plan.ep != 0) {
    refuse("--expert-parallel", fmt::format("{}", plan.ep), fmt::format("does not divide the {} experts", experts),
           divisors(experts, 4096));
  }
  plan.sequence_parallel = job.sequence_parallel.value_or(plan.tp > 1 && rules.sequence_parallel);
  if (plan.sequence_parallel && plan.tp == 1 && job.sequence_parallel) {
    refuse("--sequence-parallel", "true", "needs tensor_parallel of at least 2", "false");
  }
  if (!job.sequence_parallel && plan.tp > 1) {
    plan.assumptions.push_back({plan.sequence_parallel ? "train.assume.sp_on" : "train.assume.sp_off", {}});
  }
  plan.schedule =
      word<Schedule>(job.schedule, "schedule", {Schedule::one_f_one_b, Schedule::interleaved, Schedule::gpipe},
                     schedule_name, plan.vpp > 1 ? Schedule::interleaved : Schedule::one_f_one_b);
  if (plan.schedule == Schedule::interleaved && plan.vpp < 2) {
    refuse("--schedule", "interleaved", "needs virtual_pipeline of at least 2", "1f1b, gpipe, or --virtual-pipeline 2");
  }
  if (plan.schedule != Schedule::interleaved && plan.vpp > 1) {
    refuse("--schedule", std::string(schedule_name(plan.schedule)),
           "runs one chunk a rank, but virtual_pipeline is set", "interleaved");
  }
}

void resolve_batch(const Model& model, const Job& job, Plan& plan) {
  plan.sequence = job.sequence.value_or(4096);
  if (!job.sequence && model.learned_positions && model.max_positions > 0)
    plan.sequence = std::min(plan.sequence, model.max_positions);
  if (!job.sequence) plan.assumptions.push_back({"train.assume.sequence", {{"tokens", with_commas(plan.sequence)}}});
  plan.micro_batch = job.micro_batch.value_or(1);
  if (!job.micro_batch) plan.assumptions.push_back({"train.assume.micro_batch", {}});
  if (plan.sequence % plan.cp != 0) {
    refuse("--context-parallel", fmt::format("{}", plan.cp),
           fmt::format("does not divide the sequence of {} tokens", plan.sequence), divisors(plan.sequence, 256));
  }
  if (plan.sequence_parallel && (plan.sequence / plan.cp) % plan.tp != 0) {
    refuse("--sequence", fmt::format("{}", plan.sequence),
           fmt::format("is not divided by tensor_parallel {} under sequence parallelism", plan.tp), "a multiple of it");
  }
  if (model.learned_positions && model.max_positions > 0 && plan.sequence > model.max_positions) {
    refuse("--sequence", fmt::format("{}", plan.sequence),
           fmt::format("exceeds the {} learned positions of {}", model.max_positions, model.name),
           fmt::format("at most {}", model.max_positions));
  }
  const int64_t per_round = plan.dp * plan.micro_batch;
  if (job.global_batch) {
    if (*job.global_batch % per_round != 0) {
      refuse("--global-batch", fmt::format("{}", *job.global_batch),
             fmt::format("is no multiple of data_parallel {} x micro_batch {}", plan.dp, plan.micro_batch),
             fmt::format("a multiple of {}", per_round));
    }
    plan.micro_batches = *job.global_batch / per_round;
    if (job.gradient_accumulation && *job.gradient_accumulation != plan.micro_batches) {
      refuse("--gradient-accumulation", fmt::format("{}", *job.gradient_accumulation), "contradicts the global batch",
             fmt::format("{}", plan.micro_batches));
    }
  } else if (job.gradient_accumulation) {
    plan.micro_batches = *job.gradient_accumulation;
  } else {
    plan.micro_batches = plan.pp > 1 ? 4 * plan.pp : 1;
    if (plan.pp > 1)
      plan.assumptions.push_back({"train.assume.micro_batches", {{"n", with_commas(plan.micro_batches)}}});
  }
  if (plan.schedule == Schedule::interleaved && plan.micro_batches % plan.pp != 0) {
    refuse("--gradient-accumulation", fmt::format("{}", plan.micro_batches),
           fmt::format("micro-batches are no multiple of the {} stages, as the interleaved schedule needs", plan.pp),
           fmt::format("a multiple of {}", plan.pp));
  }
}

// Groups, and the projection names of Hugging Face and PEFT.
void set_targets(const std::vector<std::string>& targets, Adapters& a) {
  a.set_attention(false);
  a.set_mlp(false);
  const std::pair<std::string_view, bool Adapters::*> names[] = {
      {"q_proj", &Adapters::q},      {"k_proj", &Adapters::k},       {"v_proj", &Adapters::v},
      {"o_proj", &Adapters::o},      {"gate_proj", &Adapters::gate}, {"up_proj", &Adapters::up},
      {"down_proj", &Adapters::down}};
  for (const std::string& target : targets) {
    bool known = target == "all" || target == "all-linear" || target == "attention" || target == "mlp";
    if (target == "all" || target == "all-linear" || target == "attention") a.set_attention(true);
    if (target == "all" || target == "all-linear" || target == "mlp") a.set_mlp(true);
    std::vector<std::string_view> accepted{"all", "attention", "mlp"};
    for (const auto& [name, member] : names) {
      accepted.push_back(name);
      if (target != name) continue;
      a.*member = true;
      known = true;
    }
    if (!known) {
      throw InputError(
          {.field = "--lora-targets",
           .value = target,
           .problem = "is not known",
           .accepted = "all, attention, mlp, q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj",
           .near_miss = near_miss(target, accepted)});
    }
  }
}

void resolve_sharding(const Job& job, Plan& plan) {
  plan.zero = job.zero.value_or(plan.rules.default_zero);
  if (job.sharding) {
    static constexpr std::pair<std::string_view, int64_t> kNames[] = {
        {"ddp", 0}, {"none", 0}, {"zero1", 1}, {"distributed_optimizer", 1}, {"zero2", 2}, {"zero3", 3}, {"fsdp", 3}};
    bool known = false;
    for (const auto& [name, stage] : kNames) {
      if (*job.sharding != name) continue;
      known = true;
      if (job.zero && *job.zero != stage) {
        refuse("--zero", fmt::format("{}", *job.zero), fmt::format("contradicts --sharding {}", name),
               fmt::format("{}", stage));
      }
      plan.zero = stage;
    }
    if (!known)
      refuse("--sharding", *job.sharding, "is not known", "ddp, zero1, zero2, zero3, fsdp, distributed_optimizer");
  }
  plan.shard_group = plan.dp * plan.cp;
  if (!job.zero && !job.sharding && plan.shard_group > 1) {
    plan.assumptions.push_back({"train.assume.zero", {{"stage", fmt::format("{}", plan.zero)}}});
  }
  if (job.hybrid_shard) {
    if (plan.zero == 0) refuse("--hybrid-shard", fmt::format("{}", *job.hybrid_shard), "needs --zero 1, 2 or 3");
    if (plan.shard_group % *job.hybrid_shard != 0) {
      refuse("--hybrid-shard", fmt::format("{}", *job.hybrid_shard),
             fmt::format("does not divide the data-parallel group of {}", plan.shard_group),
             divisors(plan.shard_group, 4096));
    }
    plan.shard_group = *job.hybrid_shard;
  }
  for (const std::string& what : job.offload) {
    if (what == "optimizer")
      plan.offload_optimizer = true;
    else if (what == "gradients")
      plan.offload_gradients = plan.offload_optimizer = true;
    else if (what == "parameters")
      plan.offload_parameters = plan.offload_optimizer = true;
    else if (what != "none")
      refuse("--offload", what, "is not known", "optimizer, gradients, parameters");
  }
  if (plan.offload_parameters && plan.zero != 3) {
    refuse("--offload", "parameters", "needs --zero 3, which gathers them layer by layer", "optimizer, or --zero 3");
  }
}

}  // namespace

Plan resolve_plan(const Model& model, const Machine* machine, const Job& job, const Rules& rules) {
  Plan plan;
  plan.rules = rules;
  plan.textbook = job.textbook;
  plan.task =
      word<Task>(job.task, "task", {Task::pretrain, Task::full, Task::lora, Task::qlora}, task_name, Task::pretrain);
  resolve_precision(job, rules, plan);
  resolve_groups(model, machine, job, plan);
  resolve_batch(model, job, plan);
  resolve_sharding(job, plan);

  plan.recompute = word<Recompute>(job.recompute, "recompute", {Recompute::none, Recompute::selective, Recompute::full},
                                   recompute_name, Recompute::none);
  if (!job.recompute) plan.assumptions.push_back({"train.assume.no_recompute", {}});
  if (job.attention && *job.attention != "flash" && *job.attention != "eager") {
    refuse("--attention", *job.attention, "is not known", "flash, eager");
  }
  // The textbook formulas were written for unfused attention.
  plan.flash = job.attention ? *job.attention == "flash" : !job.textbook;
  if (!job.attention) plan.assumptions.push_back({plan.flash ? "train.assume.flash" : "train.assume.unfused", {}});
  plan.rules.kernels.attention_fused = plan.flash;
  using Loss = KernelChoice::Loss;
  plan.rules.kernels.loss = word<Loss>(
      job.loss, "loss", {Loss::upcast, Loss::plain, Loss::vocab_parallel, Loss::vocab_parallel_compiled, Loss::fused},
      loss_name, rules.kernels.loss);
  // Losses that overwrite the logits with their gradient leave a caller nothing to hold.
  if (plan.rules.kernels.loss == Loss::fused) plan.rules.kernels.logits_kept = false;
  for (const LayerKind& kind : model.kinds) {
    plan.hidden_dropout = std::max(plan.hidden_dropout, kind.hidden_dropout);
    plan.attention_dropout = std::max(plan.attention_dropout, kind.attention_dropout);
  }
  if (job.dropout) {
    plan.hidden_dropout = plan.attention_dropout = model.kinds.empty() ? 0 : *job.dropout;
  } else if (const double most = std::max(plan.hidden_dropout, plan.attention_dropout); most > 0 && !job.textbook) {
    plan.assumptions.push_back({"train.assume.dropout", {{"share", fmt::format("{:g}", most)}}});
  }
  if (model.counts.mtp > 0) {
    plan.assumptions.push_back(
        {"train.assume.no_mtp", {{"parameters", format_count(static_cast<double>(model.counts.mtp))}}});
  }
  for (const LayerKind& kind : model.kinds) {
    if (!kind.encoder || job.textbook) continue;
    plan.assumptions.push_back({"train.assume.encoder", {{"tokens", with_commas(plan.sequence)}}});
    break;
  }
  if (plan.frozen()) {
    if (plan.precision == Precision::fp8) refuse("--precision", "fp8", "is not known for adapters", "bf16, fp16, fp32");
    if (!model.shape_known) {
      refuse("--task", std::string(task_name(plan.task)), "needs the shapes of the model, not only its size",
             "a catalogue model, a config.json, or --layers, --hidden, ...");
    }
    plan.adapters.rank = job.lora_rank.value_or(16);
    if (!job.lora_rank) plan.assumptions.push_back({"train.assume.rank", {}});
    plan.adapters.bytes = rules.adapter_bytes;
    if (job.lora_dtype) {
      if (*job.lora_dtype == "fp32")
        plan.adapters.bytes = 4;
      else if (*job.lora_dtype == "bf16" || *job.lora_dtype == "fp16")
        plan.adapters.bytes = 2;
      else
        refuse("--lora-dtype", *job.lora_dtype, "is not known", "fp32, bf16");
    }
    if (!job.lora_targets.empty()) {
      set_targets(job.lora_targets, plan.adapters);
    } else {
      plan.assumptions.push_back({"train.assume.targets", {}});
    }
    // The frozen base is kept in 16 bits whatever the adapters use.
    plan.weight_bytes = plan.precision == Precision::fp32 ? 4 : 2;
    plan.master_bytes = 0;
  } else if (job.lora_rank || !job.lora_targets.empty() || job.lora_dtype) {
    refuse(job.lora_rank ? "--lora-rank" : "--lora-targets", "", "has no meaning without adapters",
           "--task lora or --task qlora");
  }
  if ((plan.optimizer == Optimizer::adafactor || plan.optimizer == Optimizer::muon) && !model.shape_known) {
    refuse("--optimizer", std::string(optimizer_name(plan.optimizer)),
           "needs the shapes of the model, not only its size", "adamw, adamw8bit, sgd, sgd_momentum, lion");
  }
  return plan;
}

std::vector<StageLayers> rank_layers(int64_t layers, const Plan& plan, int64_t rank) {
  const int64_t chunks = plan.pp * plan.vpp;
  const int64_t each = layers / chunks, extra = layers % chunks;
  std::vector<StageLayers> out;
  for (int64_t chunk = 0; chunk < plan.vpp; ++chunk) {
    const int64_t index = chunk * plan.pp + rank;
    out.push_back({index * each + std::min(index, extra), each + (index < extra ? 1 : 0)});
  }
  return out;
}

std::vector<std::vector<StageLayers>> stage_layers(int64_t layers, const Plan& plan) {
  std::vector<std::vector<StageLayers>> stages;
  for (int64_t rank = 0; rank < plan.pp; ++rank) stages.push_back(rank_layers(layers, plan, rank));
  return stages;
}

}  // namespace vram
