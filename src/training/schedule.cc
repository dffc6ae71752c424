#include "training/schedule.h"

#include <algorithm>
#include <iterator>

namespace vram {

std::vector<Pass> pass_order(Schedule schedule, int64_t pp, int64_t vpp, int64_t m, int64_t rank) {
  std::vector<Pass> order;
  order.reserve(static_cast<size_t>(2 * m * vpp));
  if (schedule == Schedule::gpipe) {
    for (int64_t i = 0; i < m; ++i) order.push_back({true, 0, i});
    for (int64_t i = m; i-- > 0;) order.push_back({false, 0, i});
    return order;
  }
  const int64_t total = m * vpp;
  int64_t warmup = 0;
  if (schedule == Schedule::one_f_one_b) {
    warmup = std::min(m, pp - 1 - rank);
  } else {
    warmup = std::min(total, 2 * (pp - rank - 1) + (vpp - 1) * pp);
  }
  // The k-th virtual pass: groups of pp micro-batches go through chunk 0, then chunk 1, ...
  const auto pass = [&](int64_t k, bool forward) {
    const int64_t in_round = k % (pp * vpp);
    const int64_t chunk = vpp == 1 ? 0 : in_round / pp;
    const int64_t micro = vpp == 1 ? k : k / (pp * vpp) * pp + in_round % pp;
    return Pass{forward, forward ? chunk : vpp - 1 - chunk, micro};
  };
  for (int64_t k = 0; k < warmup; ++k) order.push_back(pass(k, true));
  for (int64_t k = warmup; k < total; ++k) {
    order.push_back(pass(k, true));
    order.push_back(pass(k - warmup, false));
  }
  for (int64_t k = total - warmup; k < total; ++k) order.push_back(pass(k, false));
  return order;
}

namespace {

// What is in flight at a moment, seen without copying it.
struct Glance {
  bool forward;
  int64_t chunk;
  bool first_backward;
  const std::vector<int64_t>& in_flight;
  const std::vector<bool>& gradients;
};

Glance glance(const Moment& m) { return {m.forward, m.chunk, m.first_backward, m.in_flight, m.gradients}; }

bool dominates(const Glance& a, const Glance& b) {
  if (a.forward != b.forward || a.chunk != b.chunk) return false;
  // A first backward makes its gradients during the pass, a later one finds them: the later is never lower.
  if (a.first_backward && !b.first_backward) return false;
  for (size_t i = 0; i < a.in_flight.size(); ++i) {
    if (a.in_flight[i] < b.in_flight[i]) return false;
    if (!a.gradients[i] && b.gradients[i]) return false;
  }
  return true;
}

// GPipe's highest moments: the last forward, and the first and second backward.
std::vector<Moment> gpipe_moments(int64_t m) {
  std::vector<Moment> out{{true, 0, false, {m - 1}, {false}}, {false, 0, true, {m}, {false}}};
  if (m > 1) out.push_back({false, 0, false, {m - 1}, {true}});
  return out;
}

}  // namespace

// After the warm-up and one round with all gradients present a one-forward-one-backward order only repeats itself.
int64_t telling_micro_batches(Schedule schedule, int64_t pp, int64_t m) {
  return schedule == Schedule::gpipe ? m : std::min(m, 3 * pp);
}

ScheduleShape schedule_shape(Schedule schedule, int64_t pp, int64_t vpp, int64_t micro_batches) {
  ScheduleShape shape;
  if (schedule == Schedule::gpipe) {
    shape.ranks.assign(static_cast<size_t>(pp), gpipe_moments(micro_batches));
    return shape;
  }
  const int64_t m = telling_micro_batches(schedule, pp, micro_batches);
  shape.ranks.reserve(static_cast<size_t>(pp));
  for (int64_t rank = 0; rank < pp; ++rank) {
    // Only moments of one pass kind compare, so they are kept apart.
    std::vector<std::vector<Moment>> kept_by_kind(static_cast<size_t>(2 * vpp));
    std::vector<int64_t> in_flight(static_cast<size_t>(vpp), 0);
    std::vector<bool> gradients(static_cast<size_t>(vpp), false);
    for (const Pass& pass : pass_order(schedule, pp, vpp, m, rank)) {
      const auto chunk = static_cast<size_t>(pass.chunk);
      std::vector<Moment>& kept = kept_by_kind[2 * chunk + (pass.forward ? 0 : 1)];
      const Glance now{pass.forward, pass.chunk, !pass.forward && !gradients[chunk], in_flight, gradients};
      if (std::none_of(kept.begin(), kept.end(), [&](const Moment& k) { return dominates(glance(k), now); })) {
        kept.erase(std::remove_if(kept.begin(), kept.end(), [&](const Moment& k) { return dominates(now, glance(k)); }),
                   kept.end());
        kept.push_back({now.forward, now.chunk, now.first_backward, in_flight, gradients});
      }
      if (pass.forward) {
        ++in_flight[chunk];
      } else {
        --in_flight[chunk];
        gradients[chunk] = true;
      }
    }
    std::vector<Moment> all;
    for (auto& kept : kept_by_kind) std::move(kept.begin(), kept.end(), std::back_inserter(all));
    shape.ranks.push_back(std::move(all));
  }
  return shape;
}

}  // namespace vram
