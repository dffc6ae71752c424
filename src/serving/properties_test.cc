// Laws of the account, on random models, machines and jobs.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "ledger/ledger.h"
#include "serving/fixtures.h"
#include "serving/weights.h"

namespace vram {
namespace {

using fixtures::cards;
using fixtures::decoder_of;
using fixtures::plan_of;
using fixtures::Shape;

template <class T>
T pick(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}

struct Case {
  Shape shape;
  std::vector<Attention> kinds;
  std::vector<int64_t> pattern;
  Job job;
  int64_t cards = 1;
  Bytes memory = 80 * kGiB;

  Model model() const { return decoder_of(shape, kinds, pattern); }
  ServePlan plan() const { return plan_of(model(), fixtures::cards(cards, memory), job); }
};

std::vector<Attention> kinds_of(const Shape& s) {
  std::vector<Attention> out(4, fixtures::attention_of(s));
  out[1].kind = AttentionKind::sliding;
  out[1].window = pick<int64_t>({100, 128, 1024});
  out[2].kind = AttentionKind::mla;
  out[2].kv_lora_rank = 512;
  out[2].rope_head_dim = 64;
  out[2].nope_head_dim = 128;
  out[3] = {};
  out[3].kind = AttentionKind::linear;
  out[3].state_elements = 32 * 128 * 128;
  out[3].conv_elements = 3 * 8192;
  return out;
}

Case any_case() {
  Case c;
  c.shape.layers = *rc::gen::inRange<int64_t>(1, 24);
  c.shape.heads = pick<int64_t>({8, 16, 32});
  c.shape.kv_heads = pick<int64_t>({1, 2, 4, 8});
  c.shape.head_dim = pick<int64_t>({64, 128, 256});
  c.shape.hidden = pick<int64_t>({512, 1024, 4096});
  c.shape.ffn = pick<int64_t>({1000, 2048, 11008});
  c.shape.vocab = *rc::gen::inRange<int64_t>(100, 200'000);
  if (*rc::gen::arbitrary<bool>()) {
    c.shape.experts = *rc::gen::inRange<int64_t>(2, 20);
    c.shape.experts_per_token = 2;
    c.shape.expert_ffn = 512;
  }
  c.kinds = kinds_of(c.shape);
  for (int64_t i = 0; i < c.shape.layers; ++i) c.pattern.push_back(*rc::gen::inRange<int64_t>(0, 4));
  c.cards = pick<int64_t>({1, 2, 4, 8});
  c.memory = pick<int64_t>({8, 24, 80}) * kGiB;
  c.job.context = *rc::gen::inRange<int64_t>(1, 100'000);
  c.job.kv_dtype = pick<const char*>({"bf16", "fp8", "int8", "int4", "fp32"});
  if (*rc::gen::arbitrary<bool>()) c.job.kv_block = pick<int64_t>({1, 7, 64, 65'536});
  if (*rc::gen::arbitrary<bool>()) c.job.gpu_memory_utilization = 0.9;
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      c.job.reserve = kGiB;
      break;
    case 1:
      c.job.reserve_ratio = 0.2;
      break;
    case 2:
      c.job.reserve_total = 3 * kGiB;
      break;
    default:
      break;
  }
  if (*rc::gen::arbitrary<bool>()) {
    c.job.pipeline_parallel = 1;
    c.job.tensor_parallel = pick<int64_t>({1, c.cards});
  }
  c.job.textbook = *rc::gen::inRange(0, 5) == 0;
  return c;
}

int64_t largest(const Case& c) {
  const ServePlan plan = c.plan();
  return largest_concurrency(prepare(plan), plan.context.value);
}

TEST(Laws, FastTracedClosedFormAndLedgerAgree) {
  rc::check("fast = traced = closed form = sum of the ledger, for every rank", [] {
    const ServePlan plan = any_case().plan();
    const Prepared p = prepare(plan);
    const int64_t requests = *rc::gen::inRange<int64_t>(0, 50);
    for (size_t i = 0; i < p.ranks.size(); ++i) {
      const auto fast_program = rank_program<Fast>(plan, p.classes[i], requests);
      RC_ASSERT(check(fast_program).empty());
      const Ledger fast = make_ledger(fast_program, Tier::device);
      const Ledger traced = make_ledger(rank_program<Traced>(plan, p.classes[i], requests), Tier::device);
      const Bytes closed = p.ranks[i].weights + p.ranks[i].reserved +
                           requests * p.ranks[i].request_bytes(plan.context.value, plan.block.value);
      RC_ASSERT(fast.bytes == closed);
      RC_ASSERT(traced.bytes == closed);
      RC_ASSERT(traced.low <= closed);
      RC_ASSERT(traced.high >= closed);
      Bytes sum = 0;
      for (const Line& line : traced.lines) sum += line.bytes;
      RC_ASSERT(sum == closed);
      for (View view_by : {View::category, View::module, View::life, View::storage}) {
        RC_ASSERT(check_sums(traced, view(traced, view_by)).empty());
      }
    }
  });
}

TEST(Laws, LargestConcurrencyIsTheLastThatFits) {
  rc::check("K requests fit on every rank, K + 1 per replica do not", [] {
    const ServePlan plan = any_case().plan();
    const Prepared p = prepare(plan);
    const int64_t k = largest_concurrency(p, plan.context.value);
    RC_PRE(k < kUnlimited);
    if (k > 0) RC_ASSERT(room_left(p, plan.context.value, k) >= 0);
    RC_ASSERT(room_left(p, plan.context.value, k + p.replicas) < 0);
    const PreparedRank& tight = p.ranks[tightest_rank(p, plan.context.value)];
    const int64_t each = tight.request_bytes(plan.context.value, p.block);
    RC_ASSERT(k == (tight.room() < 0 ? 0 : p.replicas * (tight.room() / each)));
  });
}

TEST(Laws, MoreMemoryNeverCarriesLess) {
  rc::check("K does not fall with memory", [] {
    Case c = any_case();
    c.job.tensor_parallel = c.cards;  // the choice of replicas is held still
    c.job.pipeline_parallel = 1;
    const int64_t before = largest(c);
    c.memory += *rc::gen::inRange<int64_t>(0, 100) * kGiB;
    RC_ASSERT(largest(c) >= before);
  });
}

TEST(Laws, LongerRequestsAndMoreHeadsNeverCarryMore) {
  rc::check("K does not rise with context or KV heads", [] {
    Case c = any_case();
    c.job.tensor_parallel = c.cards;
    c.job.pipeline_parallel = 1;
    const int64_t before = largest(c);
    Case longer = c;
    *longer.job.context += *rc::gen::inRange<int64_t>(0, 10'000);
    RC_ASSERT(largest(longer) <= before);
    Case wider = c;
    wider.shape.kv_heads *= 2;
    RC_PRE(wider.shape.kv_heads <= wider.shape.heads);
    wider.kinds[0].kv_heads = wider.kinds[1].kv_heads = wider.shape.kv_heads;
    RC_ASSERT(largest(wider) <= before);
  });
}

TEST(Laws, RanksTogetherHoldTheModel) {
  rc::check("the ranks of one replica hold at least every tensor once", [] {
    Case c = any_case();
    c.job.textbook = false;
    const ServePlan plan = c.plan();
    const Prepared p = prepare(plan);
    Bytes sum = 0;
    for (size_t i = 0; i < p.ranks.size(); ++i) sum += p.ranks[i].weights * p.classes[i].ranks;
    RC_ASSERT(sum >= plan.parallel.data * plan.model->counts.loaded_bytes);
  });
}

TEST(Laws, MoreShardsNeverNeedMoreOnACard) {
  rc::check("weights and cache of a card do not grow with tensor parallelism", [] {
    Case c = any_case();
    c.job.textbook = false;
    c.cards = 8;
    c.job.pipeline_parallel = 1;
    Bytes weights = 0, request = 0;
    for (int64_t tp : {8, 4, 2, 1}) {
      c.job.tensor_parallel = tp;
      const ServePlan plan = c.plan();
      const PreparedRank rank = prepare(plan).ranks.front();
      RC_ASSERT(rank.weights >= weights);
      RC_ASSERT(rank.request_bytes(plan.context.value, plan.block.value) >= request);
      weights = rank.weights;
      request = rank.request_bytes(plan.context.value, plan.block.value);
    }
  });
}

TEST(Laws, LongestContextInvertsConcurrency) {
  rc::check("requests of the longest context fit, one token more does not", [] {
    const ServePlan plan = any_case().plan();
    const Prepared p = prepare(plan);
    const int64_t requests = *rc::gen::inRange<int64_t>(1, 100);
    const int64_t limit = int64_t{1} << 30;
    const int64_t longest = longest_context(p, requests, limit);
    if (longest > 0) RC_ASSERT(largest_concurrency(p, longest) >= requests);
    if (longest < limit) RC_ASSERT(largest_concurrency(p, longest + 1) < requests);
  });
}

}  // namespace
}  // namespace vram
