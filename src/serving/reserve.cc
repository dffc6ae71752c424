// What a card holds beside weights and caches, and the program of a whole rank.
#include <algorithm>

#include "serving/cache.h"
#include "serving/plan.h"
#include "serving/weights.h"

namespace vram {
namespace {

template <Number N>
N share(N of, Share s) {
  if (s.of == 1) return of * N(s.part);
  return ceil_div(of * N(s.part), N(s.of));
}

/// The largest tensors that one forward pass and one sampling step hold at a time, and the copies of tokens routed to
/// experts.
template <Number N>
struct WorkingSet {
  N forward{0}, sampler{0}, routed{0};
};

template <Number N>
WorkingSet<N> working_set(const ServePlan& plan, const RankClass& rank) {
  const Model& m = *plan.model;
  const ServingRules& r = plan.rules;
  int64_t ffn = 0, expert_ffn = 0, per_token = 0;
  for (const LayerKind& kind : m.kinds) {
    if (kind.encoder) continue;
    if (kind.mlp.kind == MlpKind::moe) {
      ffn = std::max({ffn, kind.mlp.shared_ffn, kind.mlp.dense_ffn});
      expert_ffn = std::max(expert_ffn, kind.mlp.expert_ffn);
      per_token = std::max(per_token, kind.mlp.experts_per_token);
    } else {
      ffn = std::max(ffn, kind.mlp.ffn);
    }
  }
  const N tokens = N::constant(r.batched_tokens), b = N::symbol("b", m.dtype == Dtype::f32 ? 4 : 2);
  const N tp = N::symbol("tp", plan.parallel.tensor), h = N::symbol("h", m.hidden);
  WorkingSet<N> out;
  out.forward = ceil_div(tokens * b *
                             (N::constant(r.forward_ffn_permille) * ceil_div(N::symbol("f", ffn), tp) +
                              N::constant(r.forward_hidden_permille) * h),
                         N(1000));
  if (rank.last()) {  // logits are gathered: independent of tensor parallelism
    out.sampler = N::constant(r.sequences) * N::symbol("V", m.vocab) * N::constant(r.sampler_bytes) + tokens * h * b;
  }
  if (per_token > 0) {
    const N f = ceil_div(N::symbol("f_e", expert_ffn), N::symbol("etp", plan.parallel.expert_tensor()));
    out.routed = tokens * b * N::symbol("top_k", per_token) * (max(N(2) * f, h) + f);
  }
  return out;
}

template <Number N>
class Account {
 public:
  Account(const ServePlan& plan, const RankClass& rank) : plan_(plan), rank_(rank) {}

  Program<N> of(int64_t requests) {
    // The weights are sized first, since some reserves are a share of them.
    const auto lines = weights_of_rank<N>(plan_, rank_);
    Fast weights(0);
    for (const auto& line : lines) weights = weights + Fast(line.count) * Fast(line.each.value());
    const N total = N::symbol("weights", weights.value());
    outside();
    const auto load = program_.procedure("load weights");
    for (const auto& line : lines) {
      hold(load, line.name, std::string(part_name(line.part)), Category::parameters, Life::process, line.each,
           line.count);
    }
    program_.call(main(), load);
    reserve(total);
    if (requests > 0 && plan_.kv_known) run(requests);
    if (plan_.reserve == Reserve::modelled) forward();
    return std::move(program_);
  }

 private:
  static constexpr auto main() { return Program<N>::main(); }

  void hold(uint32_t procedure, std::string name, std::string owner, Category category, Life life, N bytes,
            int64_t count = 1) {
    const auto id = program_.storage(
        {.name = std::move(name), .owner = std::move(owner), .category = category, .life = life, .bytes = bytes});
    if (count == 1) return program_.allocate(procedure, id);
    const auto each = program_.procedure("one more");
    program_.allocate(each, id);
    program_.call(procedure, each, count);
  }

  /// What others have taken before the engine counts its share of the card.
  void outside() {
    const ServingRules& r = plan_.rules;
    N context(0);
    if (plan_.reserve == Reserve::modelled) {
      context = N::constant(r.context_bytes);
      hold(main(), "CUDA context", "context", Category::context, Life::process, context);
    }
    if (!plan_.utilization) return;
    const N usable = N::constant(r.usable_bytes) * N(plan_.pooled());
    // usable - floor(usable·part / of), written so that the range of `usable` counts once.
    const Share& share = *plan_.utilization;
    const N left = ceil_div(usable * N(share.of - share.part), N(share.of)) - context;
    if (left.value() > 0) {
      hold(main(), "beyond the engine's share", "headroom", Category::reserve, Life::process,
           left.low() < 0 ? max(left, N(0)) : left);
    }
  }

  void reserve(const N& weights) {
    const ServingRules& r = plan_.rules;
    N bytes(0);
    switch (plan_.reserve) {
      case Reserve::modelled: {
        const Constant& libraries = plan_.parallel.tensor == 1   ? r.alone_bytes
                                    : plan_.parallel.tensor == 2 ? r.pair_bytes
                                                                 : r.group_bytes;
        hold(main(), "libraries and communicators", "libraries", Category::communication, Life::process,
             N::constant(libraries));
        hold(main(), "captured graphs", "graphs", Category::workspace, Life::process, N::constant(r.graph_bytes));
        return;
      }
      case Reserve::rule_of_thumb:
        bytes = ceil_div(weights * N::constant(r.reserve_permille), N(1000));
        break;
      case Reserve::per_card:
        bytes = N::symbol("reserve", plan_.reserve_bytes) * N(plan_.pooled());
        break;
      case Reserve::total:
        bytes = ceil_div(N::symbol("reserve", plan_.reserve_bytes), N::symbol("shares", plan_.cards / plan_.pooled()));
        break;
      case Reserve::ratio:
        bytes = share(weights, plan_.reserve_share);
        break;
      case Reserve::nothing:
        return;
    }
    hold(main(), "reserve", "reserve", Category::reserve, Life::process, bytes);
  }

  void run(int64_t requests) {
    const auto request = program_.procedure("request");
    for (const CacheKind& kind : cache_kinds(*plan_.model, rank_.layers)) {
      const std::string owner(kind.cross ? "cross" : attention_kind_name(kind.attention->kind));
      for (const auto& part : cache_parts<N>(plan_, kind)) {
        hold(request, part.compressed ? "compressed entries" : "K and V", owner, Category::kv_cache, Life::step,
             part.per_token * cache_entries<N>(plan_, part, plan_.context.value));
      }
      const N state = state_bytes<N>(plan_, kind);
      if (state.value() > 0) hold(request, "state", owner, Category::recurrent_state, Life::step, state);
    }
    program_.call(main(), request, requests);
  }

  void forward() {
    const WorkingSet<N> w = working_set<N>(plan_, rank_);
    const auto step = program_.procedure("forward and sample");
    const auto add = [&](std::string name, N bytes) {
      return program_.storage({.name = std::move(name),
                               .owner = "forward",
                               .category = Category::workspace,
                               .life = Life::operation,
                               .bytes = bytes});
    };
    const auto routed = add("tokens routed to experts", w.routed);
    const auto dense = add("forward pass or sampling", max(w.forward, w.sampler));
    program_.allocate(step, routed);
    program_.allocate(step, dense);
    program_.free(step, dense);
    program_.free(step, routed);
    program_.call(main(), step);
  }

  const ServePlan& plan_;
  const RankClass& rank_;
  Program<N> program_;
};

}  // namespace

template <Number N>
Program<N> rank_program(const ServePlan& plan, const RankClass& rank, int64_t requests) {
  return Account<N>(plan, rank).of(requests);
}

template Program<Fast> rank_program<Fast>(const ServePlan&, const RankClass&, int64_t);
template Program<Traced> rank_program<Traced>(const ServePlan&, const RankClass&, int64_t);

}  // namespace vram
