#include "serving/capacity.h"

#include <algorithm>
#include <limits>

#include "ledger/ledger.h"

namespace vram {

Bytes PreparedRank::request_bytes(int64_t context, int64_t block) const {
  Bytes bytes = state;
  for (const PreparedPart& p : parts) {
    bytes = checked_add(bytes, checked_mul(p.per_entry, cache_entries(p.cap, p.every, p.spills, block, context)));
  }
  return bytes;
}

Prepared prepare(const ServePlan& plan) {
  Prepared out{.classes = plan.ranks(), .replicas = plan.parallel.data, .block = plan.block.value};
  for (const RankClass& rank : out.classes) {
    PreparedRank r;
    r.memory = checked_mul(plan.rules.usable_bytes.value, plan.pooled());
    // The program of an idle rank holds weights and reserve: what its ledger counts is what capacity subtracts.
    const Ledger idle = make_ledger(rank_program<Fast>(plan, rank, 0), Tier::device);
    r.weights = idle.of(Category::parameters);
    r.reserved = idle.bytes - r.weights;
    if (plan.kv_known) {
      for (const CacheKind& kind : cache_kinds(*plan.model, rank.layers)) {
        r.state = checked_add(r.state, state_bytes<Fast>(plan, kind).value());
        for (const auto& part : cache_parts<Fast>(plan, kind)) {
          r.parts.push_back({part.per_token.value(), part.cap, part.every, part.spills});
        }
      }
    }
    out.ranks.push_back(std::move(r));
  }
  return out;
}

namespace {

int64_t requests_of(const PreparedRank& rank, int64_t context, int64_t block) {
  const Bytes room = rank.room();
  if (room < 0) return 0;
  const Bytes each = rank.request_bytes(context, block);
  return each == 0 ? kUnlimited : std::min(room / each, kUnlimited);
}

bool holds(const PreparedRank& rank, int64_t context, int64_t block, int64_t requests) {
  Bytes bytes = rank.state;
  for (const PreparedPart& p : rank.parts) {
    Bytes part = 0;
    if (__builtin_mul_overflow(p.per_entry, cache_entries(p.cap, p.every, p.spills, block, context), &part) ||
        __builtin_add_overflow(bytes, part, &bytes)) {
      return false;
    }
  }
  return rank.room() >= 0 && bytes <= rank.room() / requests;
}

}  // namespace

int64_t largest_concurrency(const Prepared& prepared, int64_t context) {
  int64_t least = kUnlimited;
  for (const PreparedRank& rank : prepared.ranks) least = std::min(least, requests_of(rank, context, prepared.block));
  int64_t all = 0;
  return __builtin_mul_overflow(least, prepared.replicas, &all) ? kUnlimited : std::min(all, kUnlimited);
}

size_t tightest_rank(const Prepared& prepared, int64_t context) {
  size_t tightest = 0;
  int64_t least = std::numeric_limits<int64_t>::max();
  Bytes least_room = std::numeric_limits<Bytes>::max();
  for (size_t i = 0; i < prepared.ranks.size(); ++i) {
    const int64_t k = requests_of(prepared.ranks[i], context, prepared.block);
    const Bytes room = prepared.ranks[i].room();
    if (k < least || (k == least && room < least_room)) {
      least = k;
      least_room = room;
      tightest = i;
    }
  }
  return tightest;
}

Bytes room_left(const Prepared& prepared, int64_t context, int64_t requests) {
  const int64_t each = ceil_div(requests, prepared.replicas);
  Bytes least = std::numeric_limits<Bytes>::max();
  for (const PreparedRank& rank : prepared.ranks) {
    const Bytes used = checked_mul(each, rank.request_bytes(context, prepared.block));
    least = std::min(least, rank.room() - used);
  }
  return least;
}

int64_t longest_context(const Prepared& prepared, int64_t requests, int64_t limit) {
  const int64_t each = ceil_div(requests, prepared.replicas);
  const auto fits = [&](int64_t context) {
    for (const PreparedRank& rank : prepared.ranks) {
      if (!holds(rank, context, prepared.block, each)) return false;
    }
    return true;
  };
  if (!fits(1)) return 0;
  if (fits(limit)) return limit;
  int64_t low = 1, high = limit;  // fits(low), not fits(high)
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace vram
