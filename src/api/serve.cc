#include "api/serve.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "api/serve_steps.h"
#include "serving/cache.h"

namespace vram {
namespace {

// Far beyond any context that is served: the search for the longest one ends here.
constexpr int64_t kLongestContext = int64_t{1} << 40;

// The job with the parallelism that was chosen, so that a change is judged alone.
Job pinned(const Job& job, const Parallel& p) {
  Job out = job;
  out.tensor_parallel = p.tensor;
  out.pipeline_parallel = p.pipeline;
  out.data_parallel = p.data;
  return out;
}

int64_t within_model(const Model& model, int64_t context) {
  return model.max_positions > 0 ? std::min(context, model.max_positions) : context;
}

void fill_ranks(ServeAnswer& answer, const Prepared& prepared) {
  const ServePlan& plan = answer.plan;
  // The account shows the requests asked for, else as many as fit.
  const int64_t most =
      answer.concurrency_unlimited || !answer.concurrency_known ? answer.asked : answer.largest_concurrency;
  const int64_t shown = ceil_div(plan.asked.value_or(std::max<int64_t>(most, 1)), plan.parallel.data);
  for (size_t i = 0; i < prepared.ranks.size(); ++i) {
    const PreparedRank& r = prepared.ranks[i];
    const int64_t requests = plan.kv_known ? shown : 0;
    answer.ranks.push_back(
        {.rank = prepared.classes[i],
         .ledger = make_ledger(rank_program<Traced>(plan, prepared.classes[i], requests), Tier::device),
         .weights_bytes = r.weights,
         .reserve_bytes = r.reserved,
         .cache_room_bytes = r.room(),
         .request_bytes = r.request_bytes(plan.context.value, plan.block.value),
         .requests = requests});
  }
  const auto ways = static_cast<double>(plan.parallel.data);
  for (const ServeRank& r : answer.ranks) {
    const auto copies = std::llround(static_cast<double>(r.rank.ranks) / ways);
    answer.weights_bytes = checked_add(answer.weights_bytes, checked_mul(copies, r.weights_bytes));
  }
}

// The caches of one copy of the model, whatever the ranks.
void fill_cache(ServeAnswer& answer) {
  if (!answer.plan.kv_known) return;
  ServePlan whole = answer.plan;
  whole.parallel = {};
  Traced per_token(0), per_request(0);
  for (const CacheKind& kind : cache_kinds(*whole.model, {0, whole.model->layers()})) {
    for (const auto& part : cache_parts<Traced>(whole, kind)) {
      if (!part.compressed && !kind.cross) per_token = per_token + part.per_token;
      per_request = per_request + part.per_token * cache_entries<Traced>(whole, part, whole.context.value);
    }
    per_request = per_request + state_bytes<Traced>(whole, kind);
  }
  answer.kv_bytes_per_token = per_token.value();
  answer.kv_formula = per_token.formula();
  answer.kv_bytes_per_request = per_request.value();
}

// Wider replicas: twice the tensor parallelism, and the layout that carries most.
template <class Offer>
void offer_parallel(const ServeAnswer& answer, const Model& model, const Machine& machine, const Job& job,
                    const Job& base, Offer offer) {
  const Parallel now = answer.plan.parallel;
  const Parallel free{job.tensor_parallel.value_or(0), job.pipeline_parallel.value_or(0), job.data_parallel.value_or(0),
                      now.expert};
  const Parallel twice{2 * now.tensor, now.pipeline, now.data / 2, now.expert};
  bool can_double = false;
  ServePlan plan = answer.plan;
  const auto choices = parallel_choices(model, machine.cards(), machine.cards_per_node, free);
  std::vector<int64_t> carried;
  for (const Parallel& p : choices) {
    can_double |= p.tensor == twice.tensor && p.pipeline == twice.pipeline && p.data == twice.data;
    plan.parallel = p;
    carried.push_back(largest_concurrency(prepare(plan), plan.context.value));
  }
  const auto best = std::max_element(carried.begin(), carried.end());
  const auto propose = [&](const Parallel& p) {
    Job change = base;
    change.tensor_parallel = p.tensor;
    change.pipeline_parallel = p.pipeline;
    change.data_parallel = p.data;
    offer("parallel", fmt::format("{} x {} x {}", p.tensor, p.pipeline, p.data), change);
  };
  if (can_double) propose(twice);
  if (best == carried.end() || *best <= answer.largest_concurrency) return;
  const Parallel& widest = choices[static_cast<size_t>(best - carried.begin())];
  if (widest.tensor != twice.tensor || widest.pipeline != twice.pipeline) propose(widest);
}

void fill_levers(ServeAnswer& answer, const Model& model, const Machine& machine, const Job& job,
                 const ServingRules& rules) {
  const Job base = pinned(job, answer.plan.parallel);
  const Bytes room = answer.worst().cache_room_bytes;
  const auto offer = [&](std::string_view id, std::string value, const Job& changed) {
    try {
      const ServePlan plan = resolve(model, machine, changed, rules);
      const Prepared p = prepare(plan);
      const int64_t k = largest_concurrency(p, plan.context.value);
      const Bytes left = p.ranks[tightest_rank(p, plan.context.value)].room();
      // Nothing is offered that leaves K alone and frees less than a hundredth of a card.
      const bool roomier = left - room > answer.plan.rules.usable_bytes.value / 100;
      const bool better = k > answer.largest_concurrency || (k == answer.largest_concurrency && roomier);
      if (better) answer.levers.push_back({id, std::move(value), k >= kUnlimited ? 0 : k, left});
    } catch (const InputError&) {  // not possible for this model or machine
    } catch (const OverflowError&) {
    }
  };
  Job change = base;
  if (answer.plan.kv.bits > 8 && answer.plan.kv_known) {
    change.kv_dtype = "fp8";
    offer("kv_dtype", "fp8", change);
  }
  if (!job.weights) {
    for (const char* dtype : {"fp8", "int4"}) {
      if (answer.plan.weights_dtype == dtype) continue;
      change = base;
      change.weights_dtype = dtype;
      offer("weights_dtype", dtype, change);
    }
  }
  if (!answer.plan.textbook) offer_parallel(answer, model, machine, job, base, offer);
  if (job.gpu_memory_utilization && *job.gpu_memory_utilization <= 0.95) {
    change = base;
    change.gpu_memory_utilization = std::round((*job.gpu_memory_utilization + 0.05) * 1000) / 1000;
    offer("utilization", fmt::format("{:g}", *change.gpu_memory_utilization), change);
  }
  if (answer.plan.context.value > 1 && answer.plan.kv_known) {
    change = base;
    change.context = answer.plan.context.value / 2;
    offer("context", with_commas(*change.context), change);
  }
}

void fill_movers(ServeAnswer& answer, const Machine& machine, const Job& job, const ServingRules& rules) {
  const ServePlan& plan = answer.plan;
  Job base = pinned(job, plan.parallel);
  // The weights are in their scheme already; planning them again for every row would only take time.
  if (plan.weights_by_table) base.weights_dtype = "checkpoint";
  base.kv_dtype = plan.kv.name;
  struct End {
    int64_t k;
    Bytes room;
  };
  const auto at = [&](ServingRules::Member row, int64_t value) -> End {
    ServingRules changed = rules;
    (changed.*row).value = value;
    const ServePlan p = resolve(*plan.model, machine, base, changed);
    const Prepared prepared = prepare(p);
    return {largest_concurrency(prepared, p.context.value), room_left(prepared, p.context.value, answer.asked)};
  };
  struct Scored {
    ServeMover mover;
    int64_t requests;
    Bytes bytes;
  };
  const int64_t k = answer.largest_concurrency;
  std::vector<Scored> all;
  for (ServingRules::Member row : ServingRules::members()) {
    const Constant& c = rules.*row;
    if (c.low == c.high) continue;
    const End low = at(row, c.low), high = at(row, c.high);
    const int64_t requests = std::max(std::abs(low.k - k), std::abs(high.k - k));
    const Bytes bytes = std::max(std::abs(low.room - answer.room_bytes), std::abs(high.room - answer.room_bytes));
    if (bytes == 0 && (requests == 0 || !answer.concurrency_known || answer.concurrency_unlimited)) continue;
    all.push_back(
        {{.row = c, .concurrency_low = low.k, .concurrency_high = high.k, .room_low = low.room, .room_high = high.room},
         requests,
         bytes});
  }
  std::stable_sort(all.begin(), all.end(), [](const Scored& a, const Scored& b) {
    return a.requests != b.requests ? a.requests > b.requests : a.bytes > b.bytes;
  });
  for (size_t i = 0; i < all.size() && i < 3; ++i) answer.movers.push_back(std::move(all[i].mover));
}

void fill_speed(ServeAnswer& answer, const Prepared& prepared) {
  const std::optional<Speed> speed = prepare_speed(answer.plan, answer.machine);
  if (!speed) return;
  const int64_t context = answer.plan.kv_known ? answer.plan.context.value : 0;
  const auto running = [&](int64_t k) {
    return k <= 0 || k >= kUnlimited || !answer.concurrency_known ? answer.asked : k;
  };
  const int64_t k = running(answer.largest_concurrency);
  ServeSpeed out{.one = decode_bound(*speed, 1, context),
                 .full = decode_bound(*speed, k, context),
                 .prefill = prefill_bound(*speed, answer.plan.context.value),
                 .ridge_requests = ridge_requests(*speed, 0),
                 .ridge_requests_at_context = ridge_requests(*speed, context),
                 .rates = speed->rates,
                 .compute_dtype = speed->compute_dtype};
  const auto doubled = [&](std::string_view id, const Speed& changed, int64_t requests) {
    const DecodeBound b = decode_bound(changed, requests, context);
    const double now = out.full.tokens_per_second;
    out.what_if.push_back({id, requests, b.tokens_per_second, now > 0 ? b.tokens_per_second / now : 1});
  };
  Prepared larger = prepared;
  for (PreparedRank& r : larger.ranks) r.memory = checked_mul(r.memory, 2);
  doubled("memory", *speed, running(largest_concurrency(larger, answer.plan.context.value)));
  Speed changed = *speed;
  changed.rates.bytes *= 2;
  doubled("bandwidth", changed, k);
  changed = *speed;
  changed.rates.flops *= 2;
  doubled("compute", changed, k);
  if (speed->rates.sent > 0) {
    changed = *speed;
    changed.rates.sent *= 2;
    doubled("link", changed, k);
  }
  answer.speed = std::move(out);
}

// What a better card would have to have more of: the rate whose doubling raises throughput at K most. Where the
// requests asked for don't fit, memory it is.
std::string_view binding_of(const ServeAnswer& answer) {
  if (!answer.fits || !answer.speed) return "capacity";
  const ServeWhatIf* most = nullptr;
  for (const ServeWhatIf& w : answer.speed->what_if) {
    if (!most || w.gain > most->gain) most = &w;
  }
  return !most || most->id == "memory" ? "capacity" : most->id;
}

}  // namespace

namespace {

// A size beyond int64 comes from what the job says: the number to blame is named.
InputError overflow_of(const Job& job) {
  constexpr Bytes absurd = Bytes{1} << 50;
  Fault fault{.problem = "makes sizes beyond 2^63 bytes", .accepted = "a smaller number"};
  const auto blame = [&](const char* field, int64_t value) {
    fault.field = field;
    fault.value = with_commas(value);
  };
  const int64_t context = job.context.value_or(0), concurrency = job.concurrency.value_or(0);
  if (job.weights.value_or(0) > absurd) {
    blame("--weights", *job.weights);
  } else if (job.reserve.value_or(0) > absurd) {
    blame("--reserve", *job.reserve);
  } else if (job.usable.value_or(0) > absurd) {
    blame("--usable", *job.usable);
  } else if (concurrency > context) {
    blame("--concurrency", concurrency);
  } else {
    blame("--context", context);
  }
  return InputError(fault);
}

ServeAnswer answer_of(const Model& model, const Machine& machine, const Job& job, const Constants& constants) {
  const ServingRules rules = serving_rules(constants, machine, job.usable);
  ServeAnswer answer{.plan = resolve(model, machine, job, rules), .machine = machine};
  const ServePlan& plan = answer.plan;
  const Prepared prepared = prepare(plan);
  const int64_t context = plan.context.value;
  answer.asked = plan.asked.value_or(1);
  answer.concurrency_known = plan.kv_known;
  const int64_t k = largest_concurrency(prepared, context);
  answer.concurrency_unlimited = plan.kv_known && k >= kUnlimited;
  answer.largest_concurrency = plan.kv_known && k < kUnlimited ? k : 0;
  answer.fits = k >= answer.asked;
  answer.room_bytes = room_left(prepared, context, answer.asked);
  answer.tightest = tightest_rank(prepared, context);
  if (plan.kv_known) {
    const int64_t one = longest_context(prepared, 1, kLongestContext);
    answer.longest_context = within_model(model, one);
    answer.longest_context_asked = within_model(model, longest_context(prepared, answer.asked, kLongestContext));
    answer.context_limited_by_model = model.max_positions > 0 && one > model.max_positions;
    answer.context_unlimited = answer.longest_context >= kLongestContext;
  }
  fill_ranks(answer, prepared);
  fill_cache(answer);
  fill_speed(answer, prepared);
  answer.binding = binding_of(answer);
  fill_steps(answer, model, machine, job, rules);
  fill_levers(answer, model, machine, job, rules);
  fill_movers(answer, machine, job, rules);
  return answer;
}

}  // namespace

ServeAnswer serve(const Model& model, const Machine& machine, const Job& job, const Constants& constants) {
  try {
    return answer_of(model, machine, job, constants);
  } catch (const OverflowError&) {
    throw overflow_of(job);
  }
}

ServeBrief serve_brief(const Model& model, const Machine& machine, const Job& job, const Constants& constants) {
  try {
    const ServePlan plan = resolve(model, machine, job, serving_rules(constants, machine, job.usable));
    const Prepared prepared = prepare(plan);
    const int64_t context = plan.context.value, asked = plan.asked.value_or(1);
    const int64_t k = largest_concurrency(prepared, context);
    const PreparedRank& rank = prepared.ranks[tightest_rank(prepared, context)];
    ServeBrief out;
    out.fits = k >= asked;
    out.parallel = plan.parallel;
    out.pooled = plan.pooled();
    out.concurrency_known = plan.kv_known;
    out.concurrency_unlimited = plan.kv_known && k >= kUnlimited;
    out.largest_concurrency = plan.kv_known && k < kUnlimited ? k : 0;
    if (plan.kv_known) out.longest_context = within_model(model, longest_context(prepared, 1, kLongestContext));
    out.needed_bytes =
        checked_add(checked_add(rank.weights, rank.reserved), rank.request_bytes(context, prepared.block));
    out.room_bytes = room_left(prepared, context, asked);
    return out;
  } catch (const OverflowError&) {
    throw overflow_of(job);
  }
}

ServeAnswer answer_serve(const Job& job, const Knowledge& knowledge) {
  const Model model = resolve_model(job, knowledge.environment());
  return serve(model, resolve_machine(job, knowledge), job, knowledge.constants());
}

}  // namespace vram
