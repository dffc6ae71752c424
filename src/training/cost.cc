#include "training/cost.h"

#include <algorithm>

#include "training/states.h"

namespace vram {

TrainingFlops training_flops(const Model& model, const Plan& plan) {
  TrainingFlops out;
  const double active = static_cast<double>(model.counts.active > 0 ? model.counts.active : model.counts.parameters);
  out.textbook_per_token = 6 * active;
  out.matmul_per_token = 6 * active;
  if (!model.shape_known) {
    if (plan.recompute == Recompute::full) out.recompute_per_token = 2 * active;
    return out;
  }
  // Looking up an embedding multiplies nothing. A tied embedding multiplies as the head.
  const double lookup = static_cast<double>(model.counts.embedding);
  const double tied = model.tied_embeddings ? static_cast<double>(model.hidden) * static_cast<double>(model.vocab) : 0;
  const double multiplying = active - lookup + tied;
  // A frozen weight needs no gradient of its own: forward 2, backward 2 instead of 4.
  out.matmul_per_token = (plan.frozen() ? 4 : 6) * multiplying;
  double core_forward = 0;
  for (int64_t i = 0; i < model.layers(); ++i) {
    const Attention& a = model.layer(i).attention;
    double reach = static_cast<double>(plan.sequence);
    switch (a.kind) {
      case AttentionKind::full:
      case AttentionKind::mla:
        break;
      case AttentionKind::sliding:
      case AttentionKind::chunked:
        reach = std::min(reach, static_cast<double>(a.window > 0 ? a.window : plan.sequence));
        break;
      default:
        reach = 0;
        break;
    }
    const double width = a.kind == AttentionKind::mla
                             ? static_cast<double>(a.heads * (a.nope_head_dim + a.rope_head_dim + a.value_head_dim))
                             : static_cast<double>(a.heads * (a.head_dim + a.value_head_dim));
    core_forward += 2 * reach * width;
    // A decoder attends to as many encoder tokens as it has of its own.
    if (a.cross) core_forward += 2 * static_cast<double>(plan.sequence) * width;
  }
  out.attention_per_token = 3 * core_forward;
  if (plan.recompute == Recompute::full) out.recompute_per_token = 2 * (multiplying - tied) + core_forward;
  if (plan.recompute == Recompute::selective) out.recompute_per_token = core_forward;
  return out;
}

namespace {

// Numbers of K and V a token that ring attention passes on: what a rank of tensor parallelism holds of them. Latent
// attention is trained with keys and values of every head.
double ring_width(const Attention& a, int64_t tp) {
  switch (a.kind) {
    case AttentionKind::mla:
      return static_cast<double>(a.heads * (a.nope_head_dim + a.rope_head_dim + a.value_head_dim)) /
             static_cast<double>(tp);
    case AttentionKind::full:
    case AttentionKind::sliding:
    case AttentionKind::chunked:
      return static_cast<double>(std::max<int64_t>(1, ceil_div(a.kv_heads, tp)) * (a.head_dim + a.value_head_dim));
    default:
      return 0;
  }
}

}  // namespace

Traffic step_traffic(const Model& model, const Plan& plan, const RankCounts& counts) {
  Traffic t;
  const auto share = [](int64_t n) { return n > 1 ? static_cast<double>(n - 1) / static_cast<double>(n) : 0.0; };
  const double m = static_cast<double>(plan.micro_batches);
  // 16-bit gradients and weights travel; fp32 gradients are reduced as they are kept.
  const double w = plan.frozen() ? static_cast<double>(plan.adapters.bytes) : plan.precision == Precision::fp32 ? 4 : 2;
  const double g = plan.frozen() ? w : static_cast<double>(plan.gradient_bytes);
  double shard = 0;  // trained numbers of this rank after ZeRO divided them
  double gathered_once = 0;
  const auto exchange = [&](const ClassCounts& c, int64_t replicas) {
    const int64_t group = std::max<int64_t>(1, std::min(replicas, plan.shard_group)), groups = replicas / group;
    const double trained = static_cast<double>(plan.frozen() ? c.adapters : c.parameters);
    const double base = !plan.frozen() ? 0
                        : plan.task == Task::qlora
                            ? static_cast<double>(c.base_bytes)
                            : static_cast<double>(plan.weight_bytes) * static_cast<double>(c.parameters);
    shard += plan.zero >= 1 ? trained / static_cast<double>(group) : trained;
    if (plan.zero == 0) {
      // All-reduce = reduce-scatter + all-gather of the gradients.
      t.data_parallel += share(replicas) * 2 * g * trained;
      return;
    }
    // ZeRO gathers updated weights instead. From stage 2 on gradients are reduced after every micro-batch, since whole
    // ones are not kept; stage 3 gathers for forward and for backward.
    // The textbook's ZeRO-2 sends what data parallelism sends (Rajbhandari et al. 2020, section 7).
    const double reductions = plan.zero >= (plan.textbook ? 3 : 2) ? m : 1;
    t.data_parallel += reductions * g * trained * (share(group) + 2 * share(groups) / static_cast<double>(group));
    const double weights = base + w * trained;
    t.data_parallel += share(group) * (plan.zero == 3 ? 2 * m * weights : w * trained);
    gathered_once += weights / static_cast<double>(group);
  };
  exchange(counts.dense, plan.dp * plan.cp);
  exchange(counts.expert, plan.expert_dp());
  const double tokens =
      static_cast<double>(plan.sequence) * static_cast<double>(plan.micro_batch) / static_cast<double>(plan.cp);
  if (model.shape_known) {
    const double stream = static_cast<double>(plan.element_bytes) * tokens * static_cast<double>(model.hidden);
    const double layers = static_cast<double>(model.layers()) / static_cast<double>(plan.pp);
    // Two all-reduces forward and two backward a layer (Megatron-LM, arXiv 1909.08053); sequence parallelism replaces
    // each by a reduce-scatter and an all-gather of the same bytes (arXiv 2205.05198). Full recompute repeats the
    // forward ones.
    const double rounds = plan.recompute == Recompute::full ? 6 : 4;
    t.tensor_parallel = m * layers * rounds * 2 * share(plan.tp) * stream;
    if (plan.pp > 1) {
      // A middle stage sends activations forward and gradients backward, once for every chunk.
      t.pipeline_parallel = m * static_cast<double>(plan.vpp) * 2 *
                            (plan.sequence_parallel ? stream / static_cast<double>(plan.tp) : stream);
    }
    for (int64_t i = 0; i < model.layers(); ++i) {
      const LayerKind& kind = model.layer(i);
      if (kind.mlp.kind == MlpKind::moe && plan.ep > 1) {
        // Dispatch and combine, forward and backward.
        // Sequence parallelism has divided the tokens already.
        const double own = plan.sequence_parallel ? stream / static_cast<double>(plan.tp) : stream;
        t.expert_parallel += m * 4 * share(plan.ep) * static_cast<double>(kind.mlp.experts_per_token) * own /
                             static_cast<double>(plan.pp);
      }
      if (plan.cp > 1) {
        // Ring attention passes K and V round, and in backward K, V and their gradients.
        const double kv = static_cast<double>(plan.element_bytes) * tokens * ring_width(kind.attention, plan.tp);
        t.context_parallel += m * 3 * static_cast<double>(plan.cp - 1) * kv / static_cast<double>(plan.pp);
      }
    }
  }
  if (plan.offload_optimizer && !plan.frozen()) {
    // Gradients go down, updated 16-bit weights come up: 4 bytes a parameter of the local shard.
    t.host_down = g * shard;
    t.host_up = w * shard;
  }
  if (plan.offload_parameters) {
    t.host_up += 2 * m * gathered_once;
  }
  t.host = t.host_down + t.host_up;
  return t;
}

std::optional<TrainingTime> training_time(double flops_per_token, double tokens, int64_t cards, const Device& device,
                                          Precision precision, double mfu, std::optional<double> price) {
  const Dtype dtype = precision == Precision::fp32  ? Dtype::tf32
                      : precision == Precision::fp8 ? Dtype::f8_e4m3
                                                    : Dtype::bf16;
  auto peak = device.flops(dtype);
  if (!peak && dtype == Dtype::tf32) peak = device.flops(Dtype::f32);
  if (!peak || *peak <= 0) return std::nullopt;
  TrainingTime t;
  t.flops = flops_per_token * tokens;
  t.peak_flops_per_card = *peak;
  t.mfu = mfu;
  const double rate = static_cast<double>(cards) * *peak * mfu;
  t.seconds = t.flops / rate;
  t.card_hours = t.seconds / 3600 * static_cast<double>(cards);
  t.tokens_per_second = rate / flops_per_token;
  if (price) t.price = t.card_hours * *price;
  return t;
}

OffloadTime offload_time(const Traffic& traffic, double link, double flops_per_token, std::optional<double> peak,
                         double mfu) {
  OffloadTime t;
  t.bytes_per_step = traffic.host;
  t.seconds_one_way = traffic.host / link;
  t.seconds_duplex = std::max(traffic.host_down, traffic.host_up) / link;
  if (peak) t.tokens_to_hide = t.seconds_one_way * *peak * mfu / flops_per_token;
  return t;
}

}  // namespace vram
