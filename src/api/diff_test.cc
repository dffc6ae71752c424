#include "api/diff.h"

#include <gtest/gtest.h>

#include <cmath>

#include "machine/fake_environment.h"

namespace vram {
namespace {

class Diff : public ::testing::Test {
 protected:
  DiffAnswer ask(const Job& a, const Job& b, std::optional<DiffOf> of = std::nullopt) {
    return answer_diff({.a = a, .b = b, .name_a = "a", .name_b = "b", .of = of}, knowledge);
  }
  double delta(const DiffAnswer& d, std::string_view group, std::string_view id) {
    const DiffLine* line = d.find(group, id);
    return line ? *line->b - *line->a : std::nan("");
  }

  FakeEnvironment environment;
  Knowledge knowledge{environment};
};

Job textbook(int64_t zero) {
  Job job{.model = "7.5e9", .on = "8x8x80GB"};
  job.zero = zero;
  job.textbook = true;
  return job;
}

TEST_F(Diff, ShardingByTheTextbook) {
  // Rajbhandari et al.: 31.4 GB a card with ZeRO-1 over 64, 1.9 GB with ZeRO-3.
  const DiffAnswer d = ask(textbook(1), textbook(3));
  EXPECT_EQ(d.of, DiffOf::train);
  ASSERT_EQ(d.said.size(), 1u);
  EXPECT_EQ(d.said[0].field, "zero");
  EXPECT_EQ(d.said[0].a, "1");
  EXPECT_EQ(d.said[0].b, "3");
  EXPECT_EQ(delta(d, "states", "total_bytes"), 1'875'000'000.0 - 31'406'250'000.0);
  // The only change does all of it.
  EXPECT_EQ(static_cast<double>(*d.said[0].alone), delta(d, "memory", "peak_bytes"));
  // 4·P·63/64 against 6·P·63/64.
  EXPECT_NEAR(*d.find("traffic", "data_parallel_bytes")->b / *d.find("traffic", "data_parallel_bytes")->a, 1.5, 1e-12);
}

TEST_F(Diff, CategoriesSumToThePeak) {
  Job a{.model = "meta-llama/Llama-3.1-8B", .on = "8xH100"};
  Job b = a;
  b.zero = 3;
  b.recompute = "full";
  b.tensor_parallel = 2;
  const DiffAnswer d = ask(a, b);
  double left = 0, right = 0;
  for (const DiffLine& l : d.lines) {
    if (l.group != "memory" || l.id == "peak_bytes" || l.id == "room_bytes") continue;
    left += *l.a;
    right += *l.b;
  }
  EXPECT_EQ(left, static_cast<double>(d.train_a->device.bytes));
  EXPECT_EQ(right, static_cast<double>(d.train_b->device.bytes));
  ASSERT_EQ(d.said.size(), 3u);
  // Data parallelism was halved although nobody says so.
  const auto dp =
      std::find_if(d.resolved.begin(), d.resolved.end(), [](const auto& r) { return r.key == "data_parallel"; });
  ASSERT_NE(dp, d.resolved.end());
  EXPECT_EQ(dp->a, "8");
  EXPECT_EQ(dp->b, "4");
  // What is said is not told again as a consequence.
  for (const ResolvedChange& r : d.resolved) EXPECT_NE(r.key, "zero");
}

TEST_F(Diff, AnEightBitCacheHalvesTheToken) {
  Job a{.model = "meta-llama/Llama-3.1-8B", .on = "1xH100"};
  Job b = a;
  b.kv_dtype = "fp8";
  const DiffAnswer d = ask(a, b);
  EXPECT_EQ(d.of, DiffOf::serve);
  EXPECT_EQ(*d.find("cache", "kv_bytes_per_token")->a, 131'072);
  EXPECT_EQ(*d.find("cache", "kv_bytes_per_token")->b, 65'536);
  ASSERT_EQ(d.said.size(), 1u);
  EXPECT_EQ(static_cast<double>(*d.said[0].alone), delta(d, "capacity", "largest_concurrency"));
  EXPECT_GT(*d.said[0].alone, 0);
}

TEST_F(Diff, TheSameJobTwice) {
  const DiffAnswer d = ask(textbook(1), textbook(1));
  EXPECT_TRUE(d.said.empty());
  EXPECT_TRUE(d.resolved.empty());
  for (const DiffLine& l : d.lines) EXPECT_FALSE(l.differs()) << l.id;
}

TEST_F(Diff, AChangeThatIsNotValidAloneSaysSo) {
  Job a{.model = "meta-llama/Llama-3.1-8B", .on = "8xH100"};
  Job b{.model = "meta-llama/Llama-3.1-8B", .on = "16xH100"};
  a.data_parallel = 8;
  b.data_parallel = 16;
  const DiffAnswer d = ask(a, b);
  ASSERT_EQ(d.said.size(), 2u);
  for (const SaidChange& s : d.said) EXPECT_FALSE(s.alone) << s.field;
}

TEST_F(Diff, RefusesWhatDoesNotTellOrFails) {
  Job trains{.model = "7B", .on = "8xH100"}, serves = trains;
  trains.zero = 3;
  serves.context = 8192;
  EXPECT_THROW(ask(trains, serves), InputError);
  EXPECT_NO_THROW(ask(trains, serves, DiffOf::train));
  try {
    ask(trains, Job{.model = "no/such", .on = "8xH100"});
    FAIL();
  } catch (const InputError& e) {
    EXPECT_EQ(std::string(e.what()).rfind("B: ", 0), 0u) << e.what();
  }
}

}  // namespace
}  // namespace vram
