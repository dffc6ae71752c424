#include "clock/roofline.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace vram {
namespace {

TEST(Roofline, RidgePointOfAnA100) { EXPECT_DOUBLE_EQ(ridge_point({.flops = 312e12, .bytes = 2e12}), 156.0); }

TEST(Roofline, DecodeOfSevenBillionParametersIsBoundByBandwidth) {
  const Roofline r = roofline({.flops = 14e9, .bytes = 14e9}, {.flops = 312e12, .bytes = 2e12});
  EXPECT_EQ(r.bound, Bound::bandwidth);
  EXPECT_DOUBLE_EQ(r.seconds, 0.007);
  EXPECT_NEAR(1 / r.seconds, 142.857, 0.001);
}

TEST(Roofline, UnknownRatesBoundNothing) {
  const Roofline r = roofline({.flops = 1e15, .bytes = 1e9, .sent = 1e12}, {.bytes = 1e12});
  EXPECT_DOUBLE_EQ(r.seconds, 1e-3);
  EXPECT_EQ(ridge_point({.flops = 1e12}), 0);
}

// A ring all-reduce of 350 GB sends about 700 GB a rank: 14 s at 50 GB/s.
TEST(Roofline, RingAllReduce) {
  EXPECT_DOUBLE_EQ(all_reduce_sent(350e9, 1), 0);
  EXPECT_DOUBLE_EQ(all_reduce_sent(350e9, 2), 350e9);
  const Roofline r = roofline({.sent = all_reduce_sent(350e9, 1000)}, {.sent = 50e9});
  EXPECT_EQ(r.bound, Bound::link);
  EXPECT_NEAR(r.seconds, 14.0, 0.05);
}

TEST(Roofline, IsTheLargestPartAndScales) {
  rc::check("seconds = max of parts; n times the work takes n times as long", [] {
    const auto amount = [] { return static_cast<double>(*rc::gen::inRange<int64_t>(1, 1'000'000'000)); };
    const Work work{amount(), amount(), amount()};
    const Rates rates{amount(), amount(), amount()};
    const Roofline one = roofline(work, rates), three = roofline(3 * work, rates);
    RC_ASSERT(one.seconds >= one.memory_seconds);
    RC_ASSERT(one.seconds >= one.compute_seconds);
    RC_ASSERT(one.seconds >= one.link_seconds);
    RC_ASSERT(three.seconds > 2.999 * one.seconds && three.seconds < 3.001 * one.seconds);
  });
}

}  // namespace
}  // namespace vram
