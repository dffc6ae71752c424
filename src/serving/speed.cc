#include "serving/speed.h"

#include <algorithm>
#include <cmath>

#include "serving/weights.h"

namespace vram {
namespace {

// Distinct experts that `tokens` tokens reach, each choosing per_token of `experts` evenly, as a share of all.
double touched(double experts, double per_token, double tokens) {
  if (experts <= 0 || per_token >= experts) return 1;
  return 1 - std::pow(1 - per_token / experts, tokens);
}

double looked_at(int64_t tokens, int64_t cap, int64_t every) {
  const int64_t entries = every == 1 ? tokens : ceil_div(tokens, every);
  return static_cast<double>(cap > 0 ? std::min(entries, cap) : entries);
}

// Pairs of positions that attention computes over a causal prompt: sum over t of min(t, cap) / every.
double pairs(double tokens, double cap, double every) {
  const double longest = cap > 0 ? std::min(tokens, cap * every) : tokens;
  return (longest * longest / 2 + (tokens - longest) * longest) / every;
}

// Matrices kept in 8 or 4 bits with scaled activations run at that rate where the device has one; weight-only schemes
// (int4, nf4, GPTQ, AWQ) compute in 16 bits.
Dtype compute_dtype(const ServePlan& plan, const Device& device) {
  std::string scheme = plan.weights_dtype;
  if (scheme == "checkpoint" && plan.model->quantization) scheme = plan.model->quantization->method;
  Dtype wanted = plan.model->dtype;
  if (scheme.find("fp8") != std::string::npos) wanted = Dtype::f8_e4m3;
  if (scheme == "nvfp4") wanted = Dtype::f4;
  if (scheme == "int8") wanted = Dtype::i8;
  if (scheme == "bf16" || scheme == "fp16") wanted = Dtype::bf16;
  return device.flops(wanted) ? wanted : Dtype::bf16;
}

void add_entries(StageWork& stage, const ServePlan& plan, const CacheKind& kind) {
  const Attention& a = *kind.attention;
  const auto layers = static_cast<double>(kind.layers);
  const double heads = static_cast<double>(a.heads) / static_cast<double>(plan.parallel.tensor);
  const auto keys = static_cast<double>(a.head_dim);
  const auto values = static_cast<double>(a.value_head_dim > 0 ? a.value_head_dim : a.head_dim);
  const bool indexed = a.index_head_dim > 0 && !kind.cross;
  for (const auto& part : cache_parts<Fast>(plan, kind)) {
    StageWork::Entries e{.bytes = static_cast<double>(part.per_token.value()), .cap = part.cap, .every = part.every};
    e.prefill_flops = e.decode_flops = 2 * layers * heads * (keys + values);
    if (a.kind == AttentionKind::mla && !kind.cross) {
      // Decoding works on the latent itself, prefill on the heads it expands to.
      e.decode_flops = 2 * layers * heads * static_cast<double>(2 * a.kv_lora_rank + a.rope_head_dim);
      e.prefill_flops = 2 * layers * heads * (static_cast<double>(a.nope_head_dim + a.rope_head_dim) + values);
    }
    if (indexed && a.index_topk > 0 && (part.compressed || a.compress_ratio == 0)) {
      // The index looks at every entry, attention at the best few.
      const auto d = static_cast<double>(a.index_head_dim);
      StageWork::Entries index{.bytes = layers * d, .every = part.every};
      index.prefill_flops = index.decode_flops = 2 * layers * static_cast<double>(a.index_heads) * d;
      e.bytes -= index.bytes;
      e.cap = e.cap > 0 ? std::min(e.cap, a.index_topk) : a.index_topk;
      stage.entries.push_back(index);
    }
    stage.entries.push_back(e);
  }
  stage.state_bytes += 2 * static_cast<double>(state_bytes<Fast>(plan, kind).value());
}

StageWork stage_work(const ServePlan& plan, const RankClass& rank) {
  const Model& model = *plan.model;
  StageWork out;
  for (const auto& line : weights_of_rank<Fast>(plan, rank)) {
    const auto count = static_cast<double>(line.count);
    const double bytes = count * static_cast<double>(line.each.value());
    const double flops = line.multiplied ? 2 * count * line.elements : 0;
    if (line.routed) {
      const auto experts = static_cast<double>(line.experts), per_token = static_cast<double>(line.experts_per_token);
      auto same = std::find_if(out.routed.begin(), out.routed.end(),
                               [&](const auto& r) { return r.experts == experts && r.per_token == per_token; });
      if (same == out.routed.end()) {
        out.routed.push_back({.experts = experts, .per_token = per_token});
        same = out.routed.end() - 1;
      }
      same->bytes += bytes;
      same->flops += flops;
      continue;
    }
    if (line.read) out.weights_bytes += bytes;
    const bool head = line.part == Part::head || line.part == Part::embedding;
    (head ? out.head_flops : out.token_flops) += flops;
  }
  if (!plan.weights_by_table) {
    const auto parameters = static_cast<double>(model.counts.parameters);
    double active = static_cast<double>(plan.parameters);
    if (plan.parameters == model.counts.parameters && model.counts.active > 0) {
      active = static_cast<double>(model.counts.active);
    }
    const auto ranks = static_cast<double>(plan.parallel.replica());
    out.weights_bytes /= static_cast<double>(plan.pooled());  // pooled cards read side by side
    out.token_flops = 2 * active / ranks;
    const int64_t experts = expert_count(model);
    if (experts > 0 && parameters > 0) {
      const double share = static_cast<double>(model.counts.expert) / parameters;
      int64_t per_token = 1;
      for (const LayerKind& kind : model.kinds) per_token = std::max(per_token, kind.mlp.experts_per_token);
      out.routed.push_back({.bytes = out.weights_bytes * share,
                            .experts = static_cast<double>(experts),
                            .per_token = static_cast<double>(per_token)});
      out.weights_bytes *= 1 - share;
    }
  }
  if (plan.kv_known) {
    for (const CacheKind& kind : cache_kinds(model, rank.layers)) add_entries(out, plan, kind);
    out.reduced_bytes =
        2.0 * 2.0 * static_cast<double>(model.hidden) * static_cast<double>(rank.layers.end - rank.layers.first);
  }
  return out;
}

}  // namespace

std::optional<Speed> prepare_speed(const ServePlan& plan, const Machine& machine) {
  const Device& device = machine.device;
  if (device.memory_only || !device.bandwidth) return std::nullopt;
  if (plan.kv_known && !has_decoder(*plan.model)) return std::nullopt;
  Speed out;
  const Dtype dtype = compute_dtype(plan, device);
  out.compute_dtype = dtype_name(dtype);
  out.rates.bytes = *device.bandwidth;
  out.rates.flops = device.flops(dtype).value_or(0);
  out.tensor = plan.parallel.tensor;
  out.replicas = plan.parallel.data;
  if (plan.parallel.tensor > plan.cards_per_node) {
    out.rates.sent = machine.inter_node ? machine.inter_node->bytes_per_second : 0;
  } else if (plan.parallel.tensor > 1) {
    out.rates.sent = machine.intra_node.bytes_per_second;
  }
  out.expert_share = static_cast<double>(std::max<int64_t>(1, plan.parallel.expert / plan.parallel.tensor));
  for (const RankClass& rank : plan.ranks()) {
    if (rank.more_experts) out.stages.push_back(stage_work(plan, rank));
  }
  if (plan.textbook) {
    const auto cards = static_cast<double>(plan.pooled());
    for (StageWork& s : out.stages) {
      for (auto& e : s.entries) e.bytes /= cards;
    }
  }
  return out;
}

namespace {

Work decode_work(const Speed& speed, const StageWork& stage, double tokens, int64_t context) {
  Work w{.flops = tokens * (stage.token_flops + stage.head_flops), .bytes = stage.weights_bytes};
  for (const auto& r : stage.routed) {
    const double met = tokens * speed.expert_share;
    w.bytes += r.bytes * touched(r.experts, r.per_token, met);
    w.flops += r.flops * met * r.per_token / r.experts;
  }
  for (const auto& e : stage.entries) {
    const double entries = tokens * looked_at(context, e.cap, e.every);
    w.bytes += entries * e.bytes;
    w.flops += entries * e.decode_flops;
  }
  if (context > 0) w.bytes += tokens * stage.state_bytes;
  w.sent = all_reduce_sent(tokens * stage.reduced_bytes, speed.tensor);
  return w;
}

}  // namespace

DecodeBound decode_bound(const Speed& speed, int64_t requests, int64_t context) {
  DecodeBound best;
  const int64_t each = ceil_div(std::max<int64_t>(requests, 1), speed.replicas);
  const auto stages = static_cast<int64_t>(speed.stages.size());
  for (int64_t batches : {int64_t{1}, std::min(stages, each)}) {
    const auto n = static_cast<double>(batches);
    const double tokens = static_cast<double>(each) / n;
    DecodeBound bound{.requests = requests};
    double sum = 0, slowest = -1;
    for (const StageWork& stage : speed.stages) {
      const Work w = decode_work(speed, stage, tokens, context);
      const Roofline r = roofline(w, speed.rates);
      sum += r.seconds;
      if (r.seconds <= slowest) continue;
      slowest = r.seconds;
      bound.work = n * w;
      bound.parts = roofline(bound.work, speed.rates);
    }
    bound.step_seconds = std::max(sum, n * slowest);
    if (bound.step_seconds > 0) bound.tokens_per_second = static_cast<double>(bound.requests) / bound.step_seconds;
    if (best.step_seconds == 0 || bound.step_seconds < best.step_seconds) best = bound;
  }
  return best;
}

PrefillBound prefill_bound(const Speed& speed, int64_t tokens) {
  PrefillBound out{.tokens = tokens, .seconds = -1};
  const auto n = static_cast<double>(tokens);
  for (const StageWork& stage : speed.stages) {
    Work w{.flops = n * stage.token_flops + stage.head_flops, .bytes = stage.weights_bytes};
    for (const auto& r : stage.routed) {
      w.bytes += r.bytes * touched(r.experts, r.per_token, n);
      w.flops += r.flops * n * r.per_token / r.experts;
    }
    for (const auto& e : stage.entries) {
      w.flops += e.prefill_flops * pairs(n, static_cast<double>(e.cap), static_cast<double>(e.every));
      w.bytes += e.bytes * looked_at(tokens, 0, e.every);  // written once
    }
    w.sent = all_reduce_sent(n * stage.reduced_bytes, speed.tensor);
    const Roofline r = roofline(w, speed.rates);
    if (r.seconds <= out.seconds) continue;
    out.seconds = r.seconds;
    out.parts = r;
    out.work = w;
  }
  return out;
}

std::optional<int64_t> ridge_requests(const Speed& speed, int64_t context) {
  if (speed.rates.flops <= 0 || speed.rates.bytes <= 0 || speed.stages.empty()) return std::nullopt;
  const auto computes = [&](int64_t n) {
    const Work w = decode_work(speed, speed.stages.front(), static_cast<double>(n), context);
    return w.flops / speed.rates.flops >= w.bytes / speed.rates.bytes;
  };
  constexpr int64_t most = int64_t{1} << 24;
  if (!computes(most)) return std::nullopt;
  int64_t low = 0, high = most;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (computes(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace vram
