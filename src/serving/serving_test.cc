#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "ledger/ledger.h"
#include "serving/cache.h"
#include "serving/fixtures.h"
#include "serving/weights.h"

namespace vram {
namespace {

using fixtures::cards;
using fixtures::decoder;
using fixtures::decoder_of;
using fixtures::largest;
using fixtures::plan_of;
using fixtures::Shape;

template <Number N>
N per_token(const ServePlan& plan) {
  N sum(0);
  for (const CacheKind& kind : cache_kinds(*plan.model, {0, plan.model->layers()})) {
    for (const auto& part : cache_parts<N>(plan, kind)) sum = sum + part.per_token;
  }
  return sum;
}

Bytes request(const Model& model, const Job& job) {
  const ServePlan plan = plan_of(model, cards(1, 80 * kGiB), job);
  return prepare(plan).ranks.front().request_bytes(plan.context.value, plan.block.value);
}

Bytes weights(const ServePlan& plan, const RankClass& rank) {
  Fast sum(0);
  for (const auto& line : weights_of_rank<Fast>(plan, rank)) sum = sum + Fast(line.count) * line.each;
  return sum.value();
}

std::string refusal(const Model& model, const Machine& machine, const Job& job) {
  try {
    plan_of(model, machine, job);
  } catch (const InputError& e) {
    return e.what();
  }
  return "accepted";
}

// --- KV caches ---

TEST(Cache, MultiHeadOfSevenBillion) {
  const Model m = decoder({});
  EXPECT_EQ(per_token<Fast>(plan_of(m, cards(1, 80 * kGiB), {})).value(), 524'288);
  EXPECT_EQ(request(m, {.context = 8192}), 4 * kGiB);
  EXPECT_EQ(100 * request(m, {.context = 8192}), 400 * kGiB);
}

TEST(Cache, EightKvHeads) {
  const Model m = decoder({.kv_heads = 8});
  EXPECT_EQ(per_token<Fast>(plan_of(m, cards(1, 80 * kGiB), {})).value(), 131'072);
  EXPECT_EQ(request(m, {.context = 8192}), kGiB);
}

TEST(Cache, EightyLayersAtThirtyTwoThousandTokensPrintsItsFormula) {
  const Model m = decoder({.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8});
  const ServePlan plan = plan_of(m, cards(1, 80 * kGiB), {.context = 32768});
  const auto kinds = cache_kinds(*plan.model, {0, 80});
  ASSERT_EQ(kinds.size(), 1u);
  const auto part = cache_parts<Traced>(plan, kinds.front()).front();
  const Traced bytes = part.per_token * cache_entries<Traced>(plan, part, plan.context.value);
  EXPECT_EQ(bytes.formula(), "2·L·n_kv·d·b·s = 2·80·8·128·2·32,768 = 10,737,418,240");
}

TEST(Cache, LongContextsOfMultiHeadAndGroupedQueries) {
  const Model mha = decoder({.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 64});
  const Model gqa = decoder({.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8});
  EXPECT_EQ(request(mha, {.context = 128'000}), 335'544'320'000);  // 312.5 GiB
  EXPECT_EQ(request(gqa, {.context = 128'000}), 41'943'040'000);   // 39.1 GiB
  EXPECT_EQ(request(mha, {.context = 131'072}), 320 * kGiB);
  EXPECT_EQ(request(gqa, {.context = 131'072}), 40 * kGiB);
}

TEST(Cache, KvHeadsAtOneHundredTwentyEightThousandTokens) {
  for (const auto& [heads, gib] : std::vector<std::pair<int64_t, int64_t>>{{32, 64}, {8, 16}, {4, 8}}) {
    EXPECT_EQ(request(decoder({.kv_heads = heads}), {.context = 131'072}), gib * kGiB) << heads;
  }
  EXPECT_EQ(request(decoder({.kv_heads = 4}), {.kv_dtype = "fp8", .context = 131'072}), 4 * kGiB);
}

TEST(Cache, EveryFormatCountsItsScales) {
  const Model m = decoder({.layers = 1, .kv_heads = 1, .head_dim = 128});
  const auto bytes = [&](const char* dtype, bool textbook) {
    Job job{.kv_dtype = dtype, .context = 16};
    job.textbook = textbook;
    return request(m, job) / 16;
  };
  EXPECT_EQ(bytes("fp32", false), 2 * 512);
  EXPECT_EQ(bytes("fp16", false), 2 * 256);
  EXPECT_EQ(bytes("fp8", false), 2 * 128);
  EXPECT_EQ(bytes("int8", false), 2 * (128 + 4));
  EXPECT_EQ(bytes("int4", false), 2 * (64 + 4));
  EXPECT_EQ(bytes("int8", true), 2 * 128);
  EXPECT_EQ(bytes("int4", true), 2 * 64);
  EXPECT_NE(refusal(m, cards(1, kGiB), {.kv_dtype = "fp12"}).find("fp12"), std::string::npos);
}

TEST(Cache, WholeBlocks) {
  const Model m = decoder({.layers = 1, .kv_heads = 1});
  EXPECT_EQ(request(m, {.context = 1}), 16 * 512);
  EXPECT_EQ(request(m, {.context = 17}), 32 * 512);
  EXPECT_EQ(request(m, {.context = 17, .kv_block = 1}), 17 * 512);
}

// A moving window of 128 tokens touches nine blocks of 16, but 128 of one token, and never more than the request has.
TEST(Cache, WindowsInBlocks) {
  Attention sliding = fixtures::attention_of({.kv_heads = 1});
  sliding.kind = AttentionKind::sliding;
  sliding.window = 128;
  const Model m = decoder_of({.layers = 1, .kv_heads = 1}, {sliding}, {0});
  EXPECT_EQ(request(m, {.context = 8192}), 9 * 16 * 512);
  EXPECT_EQ(request(m, {.context = 128}), 128 * 512);
  EXPECT_EQ(request(m, {.context = 8192, .kv_block = 1}), 128 * 512);
  EXPECT_EQ(request(m, {.context = 200, .kv_block = 256}), 256 * 512);
  EXPECT_EQ(request(m, {.context = 8192, .kv_block = 256}), 2 * 256 * 512);
}

// DeepSeek-V3: a latent of 512 and 64 rotary numbers, 576 elements a token and layer, on every rank.
TEST(Cache, LatentIsCachedOnceOnEveryRank) {
  Attention mla = fixtures::attention_of({});
  mla.kind = AttentionKind::mla;
  mla.heads = 128;
  mla.kv_lora_rank = 512;
  mla.rope_head_dim = 64;
  mla.nope_head_dim = 128;
  const Model m = decoder_of({.layers = 61}, {mla}, std::vector<int64_t>(61, 0));
  for (int64_t tp : {1, 8}) {
    const ServePlan plan = plan_of(m, cards(8, 80 * kGiB), {.tensor_parallel = tp});
    EXPECT_EQ(per_token<Fast>(plan).value(), 61 * 576 * 2) << tp;
  }
}

TEST(Cache, SparseIndexAddsEightBitKeysAndScales) {
  Attention mla = fixtures::attention_of({});
  mla.kind = AttentionKind::mla;
  mla.kv_lora_rank = 512;
  mla.rope_head_dim = 64;
  mla.index_heads = 64;
  mla.index_head_dim = 128;
  mla.index_topk = 2048;
  const Model m = decoder_of({.layers = 2}, {mla}, {0, 0});
  EXPECT_EQ(per_token<Fast>(plan_of(m, cards(1, 80 * kGiB), {})).value(), 2 * (576 * 2 + 132));
}

// Five sliding layers to one full, as Gemma 3 has them.
TEST(Cache, SlidingLayersKeepTheirWindow) {
  const Shape shape{.layers = 6, .heads = 16, .kv_heads = 8};
  Attention full = fixtures::attention_of(shape), sliding = full;
  sliding.kind = AttentionKind::sliding;
  sliding.window = 1024;
  const Model m = decoder_of(shape, {sliding, full}, {0, 0, 0, 0, 0, 1});
  const Bytes token = 2 * 8 * 128 * 2;
  EXPECT_EQ(request(m, {.context = 512}), 6 * 512 * token);
  EXPECT_EQ(request(m, {.context = 1024}), 6 * 1024 * token);
  EXPECT_EQ(request(m, {.context = 32'768}), (32'768 + 5 * (1024 + 16)) * token);
  Job textbook{.context = 32'768};
  textbook.textbook = true;
  EXPECT_EQ(request(m, textbook), 6 * 32'768 * token);
}

TEST(Cache, SharedLayersAndEncodersAddNone) {
  const Shape shape{.layers = 3};
  Attention own = fixtures::attention_of(shape), shared = own;
  shared.shares_kv = true;
  Model m = decoder_of(shape, {own, shared, own}, {0, 1, 2});
  m.kinds[2].encoder = true;
  EXPECT_EQ(request(m, {.context = 16}), 16 * 2 * 32 * 128 * 2);
}

// A hybrid: the state of a recurrent layer does not grow with the context.
TEST(Cache, RecurrentStatesAreFixed) {
  const Shape shape{.layers = 4, .heads = 16, .kv_heads = 2, .head_dim = 256};
  Attention full = fixtures::attention_of(shape), linear;
  linear.kind = AttentionKind::linear;
  linear.state_elements = 32 * 128 * 128;
  linear.conv_elements = 3 * 8192;
  const Model m = decoder_of(shape, {linear, full}, {0, 0, 0, 1});
  const Bytes state = 3 * (32 * 128 * 128 * 4 + 3 * 8192 * 2);
  const Bytes token = 2 * 2 * 256 * 2;
  EXPECT_EQ(request(m, {.context = 1024}), state + 1024 * token);
  EXPECT_EQ(request(m, {.context = 65'536}), state + 65'536 * token);
  const ServePlan plan = plan_of(m, cards(2, 80 * kGiB), {.tensor_parallel = 2});
  EXPECT_EQ(prepare(plan).ranks.front().state, state / 2);
}

TEST(Cache, KvHeadsReplicateBeyondTheirNumber) {
  const Model m = decoder({.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8});
  std::vector<Bytes> seen;
  for (int64_t tp : {1, 2, 4, 8, 16, 32}) {
    seen.push_back(per_token<Fast>(plan_of(m, cards(32, 80 * kGiB), {.tensor_parallel = tp})).value());
  }
  const Bytes whole = 2 * 80 * 8 * 128 * 2;
  EXPECT_EQ(seen, (std::vector<Bytes>{whole, whole / 2, whole / 4, whole / 8, whole / 8, whole / 8}));
}

// --- weights ---

TEST(Weights, OneCardHoldsTheTable) {
  const Model m = decoder({});
  const ServePlan plan = plan_of(m, cards(1, 80 * kGiB), {});
  EXPECT_EQ(weights(plan, plan.ranks().front()), m.counts.loaded_bytes);
}

TEST(Weights, ShardsFollowTheirRule) {
  const Shape s{.layers = 2, .hidden = 64, .heads = 8, .kv_heads = 2, .head_dim = 16, .ffn = 256, .vocab = 1000};
  const ServePlan plan = plan_of(decoder(s), cards(4, 80 * kGiB), {.tensor_parallel = 4});
  // Vocabulary 1000 -> 1024 rows, 256 a rank; 2 KV heads over 4 ranks: one each.
  const Bytes layer = 2 * (32 * 64 + 2 * 16 * 64 + 64 * 32 + 2 * 64 + 3 * 64 * 64);
  EXPECT_EQ(weights(plan, plan.ranks().front()), 2 * layer + 2 * (2 * 256 * 64 + 64));
}

TEST(Weights, StagesHoldTheirLayersAndEnds) {
  const Shape s{.layers = 10, .hidden = 64, .heads = 8, .kv_heads = 8, .head_dim = 8, .ffn = 256, .vocab = 1024};
  const Model m = decoder(s);
  const ServePlan plan = plan_of(m, cards(4, 80 * kGiB), {.tensor_parallel = 1, .pipeline_parallel = 4});
  const auto ranks = plan.ranks();
  ASSERT_EQ(ranks.size(), 4u);
  std::vector<int64_t> layers;
  Bytes sum = 0;
  for (const RankClass& r : ranks) {
    layers.push_back(r.layers.end - r.layers.first);
    sum += weights(plan, r);
  }
  EXPECT_EQ(layers, (std::vector<int64_t>{2, 3, 3, 2}));
  EXPECT_EQ(sum, m.counts.loaded_bytes);
}

TEST(Weights, TiedTablesStandOnBothEnds) {
  const Shape s{.layers = 2, .hidden = 64, .heads = 8, .kv_heads = 8, .head_dim = 8, .ffn = 256, .vocab = 1024};
  Model m = decoder(s);
  m.tied_embeddings = true;
  m.tensors.front().tensors.pop_back();
  m.counts.parameters -= 1024 * 64;
  const Bytes table = 2 * 1024 * 64, all = 2 * m.counts.parameters;
  const ServePlan one = plan_of(m, cards(1, 80 * kGiB), {});
  EXPECT_EQ(weights(one, one.ranks().front()), all);
  const ServePlan two = plan_of(m, cards(2, 80 * kGiB), {.tensor_parallel = 1, .pipeline_parallel = 2});
  EXPECT_EQ(weights(two, two.ranks()[0]) + weights(two, two.ranks()[1]), all + table);
}

TEST(Weights, ExpertsSpreadUnevenly) {
  const Shape s{.layers = 1,
                .hidden = 64,
                .heads = 8,
                .kv_heads = 8,
                .head_dim = 8,
                .vocab = 1024,
                .experts = 10,
                .experts_per_token = 2,
                .expert_ffn = 128};
  const ServePlan plan = plan_of(decoder(s), cards(4, 80 * kGiB), {.tensor_parallel = 4, .expert_parallel = 4});
  const auto ranks = plan.ranks();
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].ranks, 2);
  EXPECT_EQ(ranks[1].ranks, 2);
  const Bytes expert = 2 * 3 * 128 * 64;
  EXPECT_EQ(weights(plan, ranks[0]) - weights(plan, ranks[1]), expert);  // 3 of 10 and 2 of 10
  const ServePlan half = plan_of(decoder(s), cards(4, 80 * kGiB), {.tensor_parallel = 4, .expert_parallel = 2});
  const ServePlan none = plan_of(decoder(s), cards(4, 80 * kGiB), {.tensor_parallel = 4});
  EXPECT_EQ(weights(half, half.ranks().front()), weights(none, none.ranks().front()));  // 5 halves or 10 quarters
}

TEST(Weights, BySizeAndScheme) {
  const Model m = model_of_size(7'000'000'000);
  const auto bytes = [&](const char* dtype, bool textbook) {
    Job job{.weights_dtype = dtype};
    job.textbook = textbook;
    return weights_by_size<Fast>(plan_of(m, cards(1, 80 * kGiB), job)).value();
  };
  EXPECT_EQ(bytes("bf16", true), 14'000'000'000);
  EXPECT_EQ(bytes("fp8", true), 7'000'000'000);
  EXPECT_EQ(bytes("int4", true), 3'500'000'000);
  EXPECT_EQ(bytes("bf16", false), 14'000'000'000);
  EXPECT_EQ(bytes("int4", false), 3'500'000'000 + (54'687'500 * 20 + 7) / 8);  // groups of 128: 4.156 bits
  EXPECT_EQ(bytes("nf4", false), 3'937'500'000);                               // 4.5 bits
  EXPECT_NE(refusal(m, cards(1, kGiB), {.weights_dtype = "q4_k"}).find("q4_k"), std::string::npos);
}

// --- capacity ---

// 80e9 parameters on 8 x 80 GiB with 40 GiB reserved, 80 layers of width 8192, 2048 tokens a request.
TEST(Capacity, EightyBillionOnEightCards) {
  const auto k = [](int64_t kv_heads, Bytes weight_bytes, bool textbook) {
    const Model m = decoder({.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = kv_heads});
    Job job{.weights = weight_bytes, .context = 2048, .reserve_total = 40 * kGiB};
    job.tensor_parallel = 8;
    job.textbook = textbook;
    return largest(m, cards(8, 80 * kGiB), job);
  };
  for (bool textbook : {true, false}) {
    EXPECT_EQ(k(64, 160 * kGiB, textbook), 88);
    EXPECT_EQ(k(8, 160 * kGiB, textbook), 704);
    EXPECT_EQ(k(64, 160'000'000'000, textbook), 90);
    EXPECT_EQ(k(8, 160'000'000'000, textbook), 721);
  }
  const Model m = decoder({.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 64});
  EXPECT_EQ(per_token<Fast>(plan_of(m, cards(1, 80 * kGiB), {})).value(), 5 * kMiB / 2);
  EXPECT_EQ(request(m, {.context = 2048}), 5 * kGiB);
}

// 131,072 tokens with 32 KV heads on one A100 of 79.15 GiB with 7e9 BF16 weights.
TEST(Capacity, SevenBillionWithOneLongRequest) {
  const Model m = decoder({});
  const Machine a100 = cards(1, static_cast<Bytes>(79.15 * static_cast<double>(kGiB)));
  Job job{.params = 7'000'000'000, .context = 131'072};
  job.textbook = true;
  EXPECT_EQ(largest(m, a100, job), 1);
  job.reserve_ratio = 0.2;
  EXPECT_EQ(largest(m, a100, job), 0);
  job.textbook = false;
  EXPECT_EQ(largest(m, a100, job), 0);
  job.reserve_ratio = 0.0;
  EXPECT_EQ(largest(m, a100, job), 1);
}

TEST(Capacity, LongestContextIsTheLast) {
  const Model m = decoder({.kv_heads = 8});
  const ServePlan plan = plan_of(m, cards(1, 24 * kGiB), {.context = 1024});
  const Prepared p = prepare(plan);
  for (int64_t requests : {1, 7, 30}) {
    const int64_t longest = longest_context(p, requests, int64_t{1} << 40);
    EXPECT_GE(largest_concurrency(p, longest), requests);
    EXPECT_LT(largest_concurrency(p, longest + 1), requests);
    EXPECT_GE(room_left(p, longest, requests), 0);
    EXPECT_LT(room_left(p, longest + 1, requests), 0);
  }
}

TEST(Capacity, UtilizationLeavesTheRest) {
  const Model m = decoder({});
  Job job{.gpu_memory_utilization = 0.9, .reserve = 0};
  const ServePlan plan = plan_of(m, cards(1, 80 * kGiB), job);
  EXPECT_EQ(prepare(plan).ranks.front().room(), 72 * kGiB - m.counts.loaded_bytes);
}

TEST(Capacity, ReplicasMultiply) {
  const Model m = decoder({});
  const int64_t one = largest(m, cards(1, 80 * kGiB), {});
  EXPECT_GT(one, 0);
  EXPECT_EQ(largest(m, cards(4, 80 * kGiB), {.tensor_parallel = 1}), 4 * one);
}

TEST(Capacity, TheSmallestReplicaThatCarriesNearlyTheMostIsChosen) {
  const Model m = decoder({.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8, .ffn = 28672, .vocab = 128256});
  for (const Bytes memory : {141 * kGiB, 80 * kGiB, 48 * kGiB}) {  // 131.4 GiB of weights
    const ServePlan chosen = plan_of(m, cards(8, memory), {});
    int64_t most = 0;
    for (int64_t tensor : {1, 2, 4, 8}) {
      most = std::max(most, largest_concurrency(prepare(plan_of(m, cards(8, memory), {.tensor_parallel = tensor})),
                                                chosen.context.value));
    }
    EXPECT_GE(largest_concurrency(prepare(chosen), chosen.context.value), most * 3 / 4);
    if (chosen.parallel.tensor > 1) {
      const ServePlan narrower = plan_of(m, cards(8, memory), {.tensor_parallel = chosen.parallel.tensor / 2});
      EXPECT_LT(largest_concurrency(prepare(narrower), narrower.context.value), (most * 3 + 3) / 4);
    }
  }
  const ServePlan none = plan_of(m, cards(4, 8 * kGiB), {});
  EXPECT_EQ(none.parallel.tensor, 4);
  EXPECT_EQ(largest_concurrency(prepare(none), none.context.value), 0);
}

TEST(Capacity, RequestsAskedForDecideTheReplica) {
  const Model m = decoder({.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8, .ffn = 28672, .vocab = 128256});
  const Machine eight = cards(8, 80 * kGiB);
  const int64_t two = std::max(largest(m, eight, {.tensor_parallel = 2, .pipeline_parallel = 1}),
                               largest(m, eight, {.tensor_parallel = 1, .pipeline_parallel = 2}));
  EXPECT_EQ(plan_of(m, eight, {.concurrency = two}).parallel.replica(), 2);
  EXPECT_EQ(plan_of(m, eight, {.concurrency = two + 1}).parallel.replica(), 4);
  const ServePlan most = plan_of(m, eight, {.concurrency = 100'000});
  EXPECT_EQ(most.parallel.replica(), 8);  // nothing carries so many; one replica over all cards carries most
}

TEST(Capacity, NoCacheNoLimit) {
  Model m = decoder({.layers = 2});
  m.kinds.front().encoder = true;
  EXPECT_EQ(largest(m, cards(1, 80 * kGiB), {}), kUnlimited);
}

// --- bad input ---

TEST(Refusals, NameFieldValueAndWhatIsAccepted) {
  const Model m = decoder({.heads = 32, .kv_heads = 8});
  const Machine eight = cards(8, 80 * kGiB);
  EXPECT_EQ(refusal(m, eight, {.tensor_parallel = 3}),
            "--tensor-parallel '3' does not divide the 32 query and 8 KV heads of decoder; accepted: 1, 2, 4, 8");
  EXPECT_EQ(
      refusal(m, cards(64, 80 * kGiB), {.tensor_parallel = 64}),
      "--tensor-parallel '64' does not divide the 32 query and 8 KV heads of decoder; accepted: 1, 2, 4, 8, 16, 32");
  EXPECT_EQ(refusal(m, eight, {.tensor_parallel = 16}),
            "--tensor-parallel '16' does not fit the 8 cards of 8 cards; accepted: 1, 2, 4, 8");
  EXPECT_EQ(
      refusal(m, eight, {.tensor_parallel = 4, .data_parallel = 4}),
      "--data-parallel '4' does not fit the 8 cards of 8 cards (with 4 already spent on the others); accepted: 1, 2");
  EXPECT_EQ(
      refusal(m, eight, {.tensor_parallel = 2, .pipeline_parallel = 2, .data_parallel = 1}),
      "--data-parallel '1' does not fit the 8 cards of 8 cards (with 4 already spent on the others); accepted: 2");
  EXPECT_EQ(refusal(m, cards(64, 80 * kGiB), {.pipeline_parallel = 64}),
            "--pipeline-parallel '64' exceeds the 32 layers of decoder; accepted: 1 to 32");
  EXPECT_EQ(refusal(m, eight, {.expert_parallel = 2}),
            "--expert-parallel '2' needs experts, and decoder has none; accepted: 1");
  EXPECT_EQ(refusal(m, eight, {.tensor_parallel = 0}),
            "--tensor-parallel '0' is no number of ways; accepted: at least 1");
  EXPECT_EQ(refusal(m, eight, {.context = 0}), "--context '0' is no length in tokens; accepted: at least 1");
  EXPECT_EQ(refusal(m, eight, {.concurrency = -1}),
            "--concurrency '-1' is no number of requests; accepted: at least 1");
  EXPECT_NE(refusal(m, eight, {.reserve = 0, .reserve_total = 0}).find("contradicts"), std::string::npos);
  EXPECT_NE(refusal(m, eight, {.gpu_memory_utilization = 1.5}).find("1.5"), std::string::npos);
}

TEST(Refusals, ExpertRanksMustDivide) {
  const Shape s{.layers = 1,
                .hidden = 64,
                .heads = 8,
                .kv_heads = 8,
                .head_dim = 8,
                .vocab = 1024,
                .experts = 6,
                .experts_per_token = 2,
                .expert_ffn = 128};
  EXPECT_EQ(refusal(decoder(s), cards(8, kGiB), {.tensor_parallel = 8, .expert_parallel = 3}),
            "--expert-parallel '3' does not divide the ranks of a stage, or exceeds the 6 experts of decoder; "
            "accepted: 1, 2, 4");
}

TEST(Refusals, OverflowIsAnError) {
  const Model m = decoder({});
  const ServePlan plan = plan_of(m, cards(1, 80 * kGiB), {.context = int64_t{1} << 45});
  EXPECT_THROW(prepare(plan).ranks.front().request_bytes(plan.context.value, 16), OverflowError);
}

}  // namespace
}  // namespace vram
