#include "serving/speed.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "serving/fixtures.h"

namespace vram {
namespace {

using fixtures::decoder;
using fixtures::plan_of;
using fixtures::Shape;

Machine gpu(int64_t n, double bandwidth, double flops, double link) {
  Machine m = fixtures::cards(n, 80 * kGiB);
  m.device.memory_only = false;
  m.device.bandwidth = bandwidth;
  m.device.flops_bf16 = flops;
  m.intra_node.bytes_per_second = link;
  return m;
}

Speed speed_of(const Model& model, const Machine& machine, const Job& job) {
  const auto speed = prepare_speed(plan_of(model, machine, job), machine);
  EXPECT_TRUE(speed.has_value());
  return *speed;
}

// 14 GFLOP and 14 GB a token: no more than 143 tokens/s at 2 TB/s.
TEST(Speed, DecodeOfSevenBillion) {
  for (bool textbook : {false, true}) {
    Job job;
    job.textbook = textbook;
    const Speed s = speed_of(model_of_size(7'000'000'000), gpu(1, 2e12, 312e12, 0), job);
    const DecodeBound b = decode_bound(s, 1, 0);
    EXPECT_DOUBLE_EQ(b.work.flops, 14e9);
    EXPECT_DOUBLE_EQ(b.work.bytes, 14e9);
    EXPECT_NEAR(b.tokens_per_second, 142.857, 0.001);
    EXPECT_EQ(b.parts.bound, Bound::bandwidth);
    EXPECT_EQ(ridge_requests(s, 0), 156);  // the ridge point: 2 FLOP for every 2 bytes
  }
}

TEST(Speed, TheInputTableIsNotRead) {
  const Shape shape{.layers = 2, .hidden = 64, .heads = 8, .kv_heads = 8, .head_dim = 8, .ffn = 256, .vocab = 1024};
  const Model m = decoder(shape);
  const DecodeBound b = decode_bound(speed_of(m, gpu(1, 1e12, 1e15, 0), {}), 1, 0);
  const double table = 1024 * 64, norms = 64 * 5;
  const auto parameters = static_cast<double>(m.counts.parameters);
  EXPECT_DOUBLE_EQ(b.work.bytes, 2 * (parameters - table));
  EXPECT_DOUBLE_EQ(b.work.flops, 2 * (parameters - table - norms));
}

TEST(Speed, CachesAreReadOncePerToken) {
  const Model m = decoder({});
  const Speed s = speed_of(m, gpu(1, 2e12, 312e12, 0), {});
  const DecodeBound none = decode_bound(s, 1, 0), some = decode_bound(s, 10, 8192);
  EXPECT_DOUBLE_EQ(some.work.bytes - none.work.bytes, 10.0 * 4 * static_cast<double>(kGiB));
  EXPECT_FALSE(ridge_requests(s, 8192).has_value());  // multi-head caches keep decoding bound by bandwidth
  EXPECT_TRUE(ridge_requests(s, 0).has_value());
}

TEST(Speed, WindowsBoundWhatIsRead) {
  const Shape shape{.layers = 1};
  Attention sliding = fixtures::attention_of(shape);
  sliding.kind = AttentionKind::sliding;
  sliding.window = 1024;
  const Speed s = speed_of(fixtures::decoder_of(shape, {sliding}, {0}), gpu(1, 2e12, 312e12, 0), {});
  const double near = decode_bound(s, 1, 1024).work.bytes;
  EXPECT_DOUBLE_EQ(decode_bound(s, 1, 100'000).work.bytes, near);
  EXPECT_GT(near, decode_bound(s, 1, 512).work.bytes);
}

// 8 of 256 experts: one token reaches 8, many tokens nearly all.
TEST(Speed, BatchesTouchDistinctExperts) {
  const Shape shape{.layers = 1,
                    .hidden = 64,
                    .heads = 8,
                    .kv_heads = 8,
                    .head_dim = 8,
                    .vocab = 64,
                    .experts = 256,
                    .experts_per_token = 8,
                    .expert_ffn = 128};
  const Speed s = speed_of(decoder(shape), gpu(1, 2e12, 312e12, 0), {});
  const double expert = 2.0 * 3 * 128 * 64;
  const auto read = [&](int64_t n) {
    return (decode_bound(s, n, 0).work.bytes - s.stages.front().weights_bytes) / expert;
  };
  EXPECT_NEAR(read(1), 8, 1e-6);
  EXPECT_NEAR(read(2), 256 * (1 - (1 - 1 / 32.0) * (1 - 1 / 32.0)), 1e-6);
  EXPECT_NEAR(read(100'000), 256, 1e-6);
}

TEST(Speed, TensorParallelDividesAndReduces) {
  const Model m = decoder({.layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8});
  const Speed one = speed_of(m, gpu(1, 2e12, 312e12, 300e9), {.tensor_parallel = 1});
  const Speed eight = speed_of(m, gpu(8, 2e12, 312e12, 300e9), {.tensor_parallel = 8});
  const DecodeBound a = decode_bound(one, 16, 4096), b = decode_bound(eight, 16, 4096);
  EXPECT_NEAR(b.work.flops, a.work.flops / 8, a.work.flops * 1e-9);
  EXPECT_NEAR(b.work.bytes, a.work.bytes / 8, a.work.bytes * 1e-3);  // norms are replicated
  EXPECT_EQ(a.work.sent, 0);
  EXPECT_DOUBLE_EQ(b.work.sent, 2 * 7.0 / 8 * 16 * 2 * 2 * 32 * 4096);
  EXPECT_GT(b.tokens_per_second, a.tokens_per_second);
}

TEST(Speed, PrefillCountsAttentionPairs) {
  const Shape shape{.layers = 4, .hidden = 512, .heads = 4, .kv_heads = 4, .head_dim = 128, .ffn = 2048, .vocab = 1024};
  const Speed s = speed_of(decoder(shape), gpu(1, 2e12, 312e12, 0), {});
  const double n = 4096;
  const PrefillBound p = prefill_bound(s, 4096);
  const double matrices = 4.0 * (4 * 512 * 512 + 3 * 512 * 2048), head = 1024 * 512;
  const double attention = 4 * n * n * 512 / 2 * 4;  // 4·n·n·h a layer, half of it causal
  EXPECT_NEAR(p.work.flops, 2 * n * matrices + 2 * head + attention, 1);
}

TEST(Speed, MemoryOnlyMachinesHaveNone) {
  const Machine m = fixtures::cards(1, 80 * kGiB);
  EXPECT_FALSE(prepare_speed(plan_of(decoder({}), m, {}), m).has_value());
  Model encoder = decoder({});
  encoder.kinds.front().encoder = true;
  const Machine card = gpu(1, 2e12, 312e12, 0);
  EXPECT_FALSE(prepare_speed(plan_of(encoder, card, {}), card).has_value());
}

TEST(Speed, BoundsMoveTheRightWay) {
  rc::check("more requests never raise a request's rate; more of any rate never slows", [] {
    const Model m = decoder({.layers = 8, .kv_heads = 8});
    const int64_t tp = *rc::gen::elementOf(std::vector<int64_t>{1, 2, 4});
    const Job job{.tensor_parallel = tp, .pipeline_parallel = 4 / tp};
    Speed s = speed_of(m, gpu(4, 2e12, 312e12, 300e9), job);
    const int64_t n = *rc::gen::inRange<int64_t>(1, 500), context = *rc::gen::inRange<int64_t>(1, 50'000);
    const DecodeBound few = decode_bound(s, n, context), more = decode_bound(s, n + 1, context);
    RC_ASSERT(more.step_seconds >= few.step_seconds * 0.999999);
    RC_ASSERT(decode_bound(s, n, context + 1).step_seconds >= few.step_seconds * 0.999999);
    s.rates.bytes *= 2;
    RC_ASSERT(decode_bound(s, n, context).step_seconds <= few.step_seconds);
    s.rates.flops *= 2;
    s.rates.sent *= 2;
    const double faster = decode_bound(s, n, context).step_seconds;
    RC_ASSERT(faster <= few.step_seconds / 2 * 1.000001 && faster >= few.step_seconds / 2 * 0.999999);
  });
}

}  // namespace
}  // namespace vram
