#include "serving/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "serving/cache.h"
#include "serving/capacity.h"
#include "serving/weights.h"

namespace vram {

std::string_view reserve_name(Reserve reserve) {
  switch (reserve) {
    case Reserve::modelled:
      return "modelled";
    case Reserve::rule_of_thumb:
      return "rule_of_thumb";
    case Reserve::per_card:
      return "per_card";
    case Reserve::total:
      return "total";
    case Reserve::ratio:
      return "ratio";
    case Reserve::nothing:
      return "nothing";
  }
  return "?";
}

Share share_of(double ratio) {
  for (int64_t of : {1, 10, 100, 1000}) {
    const double part = ratio * static_cast<double>(of);
    if (std::abs(part - std::round(part)) < 1e-9) return {std::llround(part), of};
  }
  return {std::llround(ratio * 1e6), 1'000'000};
}

std::vector<RankClass> ServePlan::ranks() const {
  if (!textbook) return rank_classes(*model, parallel);
  return {{.layers = {0, model->layers()}, .ranks = parallel.data}};
}

namespace {

Constant given(std::string id, int64_t value) {
  return {.id = std::move(id), .value = value, .low = value, .high = value, .basis = Basis::exact};
}

void require_positive(const std::optional<int64_t>& value, const char* field, const char* problem) {
  if (!value || *value > 0) return;
  throw InputError({.field = field, .value = std::to_string(*value), .problem = problem, .accepted = "at least 1"});
}

// `model` as it is served: its own numbers say how caches are kept where the job doesn't.
KvFormat kv_format(const Model& model, const Job& job, const ServingRules& rules) {
  const char* native = model.dtype == Dtype::f32 ? "fp32" : model.dtype == Dtype::f16 ? "fp16" : "bf16";
  KvFormat kv{.name = job.kv_dtype.value_or(native), .scale = given("scale", 0)};
  if (kv.name == "fp32") {
    kv.bits = 32;
  } else if (kv.name == "fp8" || kv.name == "int8") {
    kv.bits = 8;
    kv.scale = kv.name == "fp8" ? rules.kv_scale_fp8 : rules.kv_scale_int8;
  } else if (kv.name == "int4") {
    kv.bits = 4;
    kv.scale = rules.kv_scale_int4;
  } else if (kv.name != "bf16" && kv.name != "fp16") {
    throw InputError({.field = "--kv-dtype",
                      .value = kv.name,
                      .problem = "is no KV cache format",
                      .accepted = "bf16, fp16, fp32, fp8, int8, int4"});
  }
  if (job.textbook) kv.scale = given("scale", 0);
  return kv;
}

void resolve_reserve(ServePlan& plan, const Job& job) {
  if (job.reserve.has_value() + job.reserve_total.has_value() + job.reserve_ratio.has_value() > 1) {
    throw InputError({.field = job.reserve ? "--reserve" : "--reserve-total",
                      .problem = "contradicts another reserve",
                      .accepted = "one of --reserve (per card), --reserve-total, --reserve-ratio"});
  }
  if (job.reserve) {
    plan.reserve = Reserve::per_card;
    plan.reserve_bytes = *job.reserve;
  } else if (job.reserve_total) {
    plan.reserve = Reserve::total;
    plan.reserve_bytes = *job.reserve_total;
  } else if (job.reserve_ratio) {
    plan.reserve = Reserve::ratio;
    plan.reserve_share = share_of(*job.reserve_ratio);
  } else if (plan.textbook) {
    plan.reserve = Reserve::nothing;
  } else {
    plan.reserve = plan.kv_known ? Reserve::modelled : Reserve::rule_of_thumb;
  }
  if (plan.reserve_bytes < 0) {
    throw InputError({.field = "--reserve",
                      .value = std::to_string(plan.reserve_bytes),
                      .problem = "is negative",
                      .accepted = "bytes such as 2GiB"});
  }
  if (!job.gpu_memory_utilization) return;
  const double u = *job.gpu_memory_utilization;
  if (!(u > 0 && u <= 1)) {
    throw InputError({.field = "--gpu-memory-utilization",
                      .value = fmt::format("{}", u),
                      .problem = "is no share of a card",
                      .accepted = "a number above 0 and up to 1, such as 0.9"});
  }
  plan.utilization = share_of(u);
}

// Engines load fp32 checkpoints in 16 bits unless told otherwise.
Model as_served(const Model& model, const std::string& scheme) {
  if (scheme == "checkpoint") return model;
  const bool narrow = model.dtype == Dtype::f32 && scheme != "fp32" && scheme != "bf16" && scheme != "fp16";
  return with_planned_quantization(narrow ? with_planned_quantization(model, "bf16") : model, scheme);
}

void resolve_weights(ServePlan& plan, const Model& model, const Job& job) {
  const bool single = model.dtype == Dtype::f32 && !model.quantization;
  plan.weights_dtype = job.weights_dtype.value_or(single ? "bf16" : "checkpoint");
  if (single && !job.weights_dtype) plan.remarks.push_back({"serving.remark.fp32", {}});
  plan.given_weights = job.weights;
  plan.parameters = job.params.value_or(model.counts.parameters);
  // A size given beside a shape counts: the tensors of the shape would sum to something else.
  const bool has_table = model.shape_known && !model.tensors.empty() && plan.parameters == model.counts.parameters;
  plan.weights_by_table = has_table && !job.weights && !job.textbook;
  // A mix of GGUF types has no size of its own: even by size it is that of its tensors.
  const bool mix = has_table && is_gguf_mix(plan.weights_dtype);
  const bool planned = has_table && (plan.weights_by_table || single || mix);
  plan.model = std::make_shared<Model>(planned ? as_served(model, plan.weights_dtype) : model);
  if (plan.weights_by_table || job.weights || mix) return;
  if (plan.parameters <= 0) {
    throw InputError({.field = "--params",
                      .problem = "is needed: the size of the model is unknown",
                      .accepted = "a count such as 7B"});
  }
  check_size_scheme(plan.weights_dtype);
}

void resolve_request(ServePlan& plan, const Model& model, const Job& job) {
  require_positive(job.context, "--context", "is no length in tokens");
  require_positive(job.kv_block, "--kv-block", "is no length in tokens");
  require_positive(job.concurrency, "--concurrency", "is no number of requests");
  plan.context = plan.rules.context_tokens;
  if (job.context) {
    if (model.learned_positions && model.max_positions > 0 && *job.context > model.max_positions) {
      throw InputError({.field = "--context",
                        .value = with_commas(*job.context),
                        .problem = fmt::format("exceeds the {} learned positions of {}",
                                               with_commas(model.max_positions), model.name),
                        .accepted = fmt::format("at most {}", model.max_positions)});
    }
    plan.context = given("context", *job.context);
  } else if (model.max_positions > 0) {
    plan.context.value = std::min(plan.context.value, model.max_positions);
    plan.context.low = std::min(plan.context.low, plan.context.value);
    plan.context.high = std::min(plan.context.high, model.max_positions);
  }
  plan.block = plan.textbook  ? given("block", 1)
               : job.kv_block ? given("block", *job.kv_block)
                              : plan.rules.block_tokens;
  plan.asked = job.concurrency;
}

void resolve_parallel(ServePlan& plan, const Model& model, const Machine& machine, const Job& job) {
  require_positive(job.tensor_parallel, "--tensor-parallel", "is no number of ways");
  require_positive(job.pipeline_parallel, "--pipeline-parallel", "is no number of ways");
  require_positive(job.data_parallel, "--data-parallel", "is no number of ways");
  require_positive(job.expert_parallel, "--expert-parallel", "is no number of ways");
  const Parallel wanted{job.tensor_parallel.value_or(0), job.pipeline_parallel.value_or(0),
                        job.data_parallel.value_or(0), job.expert_parallel.value_or(1)};
  if (plan.textbook) {
    // All cards of a replica are one memory: how heads are spread over them does not matter.
    const int64_t data = std::max<int64_t>(wanted.data, 1);
    if (plan.cards % data != 0) refuse_parallel(model, machine, {0, 0, data, 1});
    plan.parallel = {plan.cards / data, 1, data, 1};
    return;
  }
  const std::vector<Parallel> choices = parallel_choices(model, plan.cards, plan.cards_per_node, wanted);
  if (choices.empty()) refuse_parallel(model, machine, wanted);
  plan.parallel = choices.front();
  if (choices.size() == 1) return;
  // Where a number of requests is asked for, the smallest replica that carries it. Where not, the smallest that carries
  // nearly as many as the best spread: wider tensor parallelism spares copies of the weights but costs communication.
  // Pipeline stages are added only where tensor parallelism alone holds no request.
  Parallel best = choices.front();
  int64_t most = -1;
  std::vector<int64_t> carried;
  for (const Parallel& choice : choices) {
    plan.parallel = choice;
    carried.push_back(!plan.asked && most > 0 && choice.pipeline > best.pipeline
                          ? -1
                          : largest_concurrency(prepare(plan), plan.context.value));
    if (carried.back() > most) {
      most = carried.back();
      best = choice;
    }
    if (plan.asked && most >= *plan.asked) break;
  }
  const int64_t wished = plan.asked.value_or(1);
  if (!plan.asked && most > 0) {
    const int64_t enough = mul_div_up(most, plan.rules.spread_permille.value, 1000);
    for (size_t i = 0; i < choices.size(); ++i) {
      if (choices[i].pipeline == best.pipeline && carried[i] >= std::max<int64_t>(1, enough)) {
        best = choices[i];
        break;
      }
    }
  }
  std::string_view why = plan.asked ? "serving.remark.parallel_asked" : "serving.remark.parallel";
  if (most < wished) why = most > 0 ? "serving.remark.parallel_most" : "serving.remark.parallel_all";
  if (most <= 0) {  // the widest replica misses least, with as much tensor parallelism as heads and node allow
    best = *std::max_element(choices.begin(), choices.end(), [](const Parallel& a, const Parallel& b) {
      return a.replica() != b.replica() ? a.replica() < b.replica() : a.tensor < b.tensor;
    });
  }
  plan.parallel = best;
  plan.remarks.push_back({why,
                          {{"tp", with_commas(plan.parallel.tensor)},
                           {"pp", with_commas(plan.parallel.pipeline)},
                           {"dp", with_commas(plan.parallel.data)}}});
}

// What the layers of the model make the plan assume.
void remark_layers(ServePlan& plan) {
  const Model& m = *plan.model;
  auto& out = plan.remarks;
  bool sliding = false, chunked = false, mla = false, recurrent = false, shared = false, cross = false, index = false;
  int64_t kv = 0;
  for (const LayerKind& kind : m.kinds) {
    if (kind.encoder) continue;
    const Attention& a = kind.attention;
    sliding |= a.kind == AttentionKind::sliding && a.window > 0;
    chunked |= a.kind == AttentionKind::chunked && a.window > 0;
    mla |= a.kind == AttentionKind::mla;
    recurrent |= is_recurrent(a.kind);
    shared |= a.shares_kv;
    cross |= a.cross;
    index |= a.index_head_dim > 0;
    if (!is_recurrent(a.kind) && a.kind != AttentionKind::mla) kv = std::max(kv, a.kv_heads);
  }
  const int64_t tp = plan.parallel.tensor;
  if (sliding) out.push_back({"serving.remark.sliding", {}});
  if (chunked) out.push_back({"serving.remark.chunked", {}});
  if (mla && tp > 1) out.push_back({"serving.remark.mla", {{"tp", with_commas(tp)}}});
  if (index) out.push_back({"serving.remark.index", {}});
  if (recurrent) {
    out.push_back({"serving.remark.states",
                   {{"state", with_commas(plan.rules.state_bytes.value * 8)},
                    {"conv", with_commas(plan.rules.conv_bytes.value * 8)}}});
  }
  if (shared) out.push_back({"serving.remark.shared", {}});
  if (cross) out.push_back({"serving.remark.cross", {}});
  if (kv > 0 && tp > kv) {
    out.push_back({"serving.remark.replicated",
                   {{"kv", with_commas(kv)}, {"tp", with_commas(tp)}, {"times", with_commas(tp / kv)}}});
  }
}

void remark(ServePlan& plan, const Job& job) {
  const Model& m = *plan.model;
  auto& out = plan.remarks;
  if (!job.context) out.push_back({"serving.remark.context", {{"tokens", with_commas(plan.context.value)}}});
  if (m.max_positions > 0 && plan.context.value > m.max_positions) {
    out.push_back({"serving.remark.beyond",
                   {{"tokens", with_commas(plan.context.value)}, {"limit", with_commas(m.max_positions)}}});
  }
  if (!plan.kv_known) out.push_back({"serving.remark.no_shape", {}});
  if (plan.textbook) out.push_back({"serving.remark.textbook", {}});
  if (plan.textbook || !plan.kv_known) return;
  remark_layers(plan);
  if (!job.kv_block) out.push_back({"serving.remark.block", {{"tokens", with_commas(plan.block.value)}}});
  if (plan.reserve == Reserve::modelled) out.push_back({"serving.remark.modelled", {}});
  if (plan.weights_by_table) {
    const bool mtp = std::any_of(m.tensors.begin(), m.tensors.end(),
                                 [](const TensorGroup& g) { return g.part == TensorGroup::Part::mtp; });
    if (mtp) out.push_back({"serving.remark.mtp", {}});
    const int64_t unit = plan.rules.vocabulary_padding.value;
    const int64_t padded = round_up(round_up(m.vocab, unit), plan.parallel.tensor);
    if (padded != m.vocab) {
      out.push_back({"serving.remark.vocabulary",
                     {{"vocab", with_commas(m.vocab)}, {"padded", with_commas(padded)}, {"unit", with_commas(unit)}}});
    }
  }
  if (plan.parallel.expert > 1) {
    out.push_back({"serving.remark.experts",
                   {{"ep", with_commas(plan.parallel.expert)}, {"etp", with_commas(plan.parallel.expert_tensor())}}});
  }
}

}  // namespace

ServePlan resolve(const Model& model, const Machine& machine, const Job& job, const ServingRules& rules) {
  ServePlan plan{.rules = rules};
  plan.textbook = job.textbook;
  plan.cards = machine.cards();
  plan.cards_per_node = machine.cards_per_node;
  plan.kv_known = model.shape_known && model.layers() > 0;
  resolve_weights(plan, model, job);
  plan.kv = kv_format(*plan.model, job, rules);
  resolve_reserve(plan, job);
  resolve_request(plan, model, job);
  resolve_parallel(plan, model, machine, job);
  remark(plan, job);
  return plan;
}

}  // namespace vram
