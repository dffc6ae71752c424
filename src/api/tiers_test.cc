#include "api/tiers.h"

#include <gtest/gtest.h>

#include "machine/fake_environment.h"

namespace vram {
namespace {

class TiersVerb : public ::testing::Test {
 protected:
  TiersAnswer ask(const Job& job) { return answer_tiers(job, knowledge); }
  const OffloadCase& offload(const TiersAnswer& a, std::string_view id) {
    for (const OffloadCase& c : a.offload) {
      if (c.id == id) return c;
    }
    throw std::out_of_range(std::string(id));
  }
  const SaveTo& store(const TiersAnswer& a, std::string_view id) {
    for (const SaveTo& s : a.checkpoint.stores) {
      if (s.id == id) return s;
    }
    throw std::out_of_range(std::string(id));
  }

  FakeEnvironment environment;
  Knowledge knowledge{environment};
};

TEST_F(TiersVerb, FortyTerabytesAtOneTerabyteASecond) {
  Job job;
  job.checkpoint = 40'000'000'000'000;
  job.write = 1e12;
  const TiersAnswer a = ask(job);
  EXPECT_DOUBLE_EQ(*a.checkpoint.chosen->write_seconds, 40);
  EXPECT_FALSE(a.checkpoint.mtbf);  // no cards, no failure rate
  EXPECT_TRUE(a.levels.empty());
  job.mtbf = 11135;
  job.restart = 560;
  // Reads as fast as writes: 560 + 40 s to come back.
  const SaveInterval i = *ask(job).checkpoint.chosen->interval;
  EXPECT_DOUBLE_EQ(i.restore, 600);
  EXPECT_NEAR(i.young, 943.8, 0.1);  // sqrt(2·40·11135)
}

TEST_F(TiersVerb, CheckpointsHoldTwelveFourteenOrSixteenBytes) {
  const TiersAnswer a = ask({.model = "7e9", .on = "8xH100"});
  const auto& kinds = a.checkpoint.kinds;
  ASSERT_EQ(kinds.size(), 4u);
  EXPECT_EQ(kinds[0].bytes, 98'000'000'000);   // 14
  EXPECT_EQ(kinds[1].bytes, 84'000'000'000);   // 12
  EXPECT_EQ(kinds[2].bytes, 14'000'000'000);   // 2
  EXPECT_EQ(kinds[3].bytes, 112'000'000'000);  // 16
  EXPECT_EQ(*a.checkpoint.bytes, kinds[0].bytes);
  Job fp32{.model = "7e9", .on = "8xH100"};
  fp32.precision = "fp32";
  EXPECT_EQ(ask(fp32).checkpoint.kinds[0].bytes, 84'000'000'000);  // 4 + 8
}

TEST_F(TiersVerb, PublishedCheckpoints) {
  // BLOOM-176B: 2.3 TiB written to GPFS in 40 s. 744e9 parameters on 16 nodes: about 650 GB staged on each.
  const TiersAnswer bloom = ask({.model = "176.2e9", .on = "48x8xA100-80G"});
  EXPECT_NEAR(static_cast<double>(*bloom.checkpoint.bytes), 2.3 * 1024.0 * 1024 * 1024 * 1024, 0.03 * 2.5e12);
  EXPECT_NEAR(*store(bloom, "gpfs").write_seconds, 40, 2);
  const TiersAnswer glm = ask({.model = "744e9", .on = "16x4xGB300"});
  EXPECT_NEAR(static_cast<double>(*glm.checkpoint.bytes_per_node), 651e9, 1e9);
}

TEST_F(TiersVerb, FailuresGoWithTheCards) {
  // Llama 3: 16,384 H100 and a failure every 3.1 hours (466 in 54 days: 2.8).
  const TiersAnswer a = ask({.model = "405e9", .on = "2048x8xH100"});
  EXPECT_TRUE(a.checkpoint.mtbf_assumed);
  EXPECT_NEAR(*a.checkpoint.mtbf / 3600, 2.8, 0.2);
}

TEST_F(TiersVerb, OptimizerOffloadOfSevenBillion) {
  Job job{.model = "7e9", .on = "1xH100"};
  job.textbook = true;
  job.pcie = 64e9;
  job.mfu = 0.45;
  const OffloadCase& c = offload(ask(job), "optimizer");
  EXPECT_DOUBLE_EQ(c.load.down_bytes + c.load.up_bytes, 28e9);
  EXPECT_DOUBLE_EQ(c.bound.link_seconds, 0.4375);
  EXPECT_DOUBLE_EQ(c.bound.duplex_seconds, 0.21875);
  EXPECT_NEAR(*c.bound.tokens_for_link, 4636, 1);
  EXPECT_EQ(c.host_bytes_per_card, 84 * kGB);
  EXPECT_FALSE(c.asked);
  // The same figures as train prints: one accounting.
  Job trained = job;
  trained.offload = {"optimizer"};
  const TrainAnswer t = answer_train(trained, knowledge);
  EXPECT_DOUBLE_EQ(t.offload->seconds_one_way, c.bound.link_seconds);
  EXPECT_DOUBLE_EQ(*t.offload->tokens_to_hide, *c.bound.tokens_for_link);
}

TEST_F(TiersVerb, AnOffloadThatIsAskedForAndStallsIsNo) {
  Job job{.model = "7e9", .on = "1xH100"};
  job.textbook = true;
  job.offload = {"optimizer"};
  job.sequence = 1024;
  EXPECT_EQ(ask(job).exit(), Exit::no);
  job.offload.clear();
  EXPECT_EQ(ask(job).exit(), Exit::yes);
}

TEST_F(TiersVerb, AStoreTakesNoMoreThanTheCardsSend) {
  const TiersAnswer a = ask({.model = "7e9", .on = "1xH100"});
  EXPECT_TRUE(store(a, "3fs").link_bound);
  EXPECT_DOUBLE_EQ(store(a, "3fs").write.value, 55.1e9);
  EXPECT_FALSE(store(a, "nas").link_bound);
}

TEST_F(TiersVerb, TheDatasetOfTwoTrillionTokens) {
  Job job{.model = "70e9", .on = "125x8xA100-80G"};
  job.textbook = true;
  job.tokens = 2e12;
  job.mfu = 0.45;
  const TiersAnswer a = ask(job);
  EXPECT_DOUBLE_EQ(a.dataset->bytes_2, 4e12);
  EXPECT_DOUBLE_EQ(a.dataset->bytes_4, 8e12);
  EXPECT_NEAR(*a.dataset->tokens_per_second, 334e3, 1e3);
  // Bytes alone need no model.
  Job bare;
  bare.tokens = 2e12;
  EXPECT_FALSE(ask(bare).dataset->tokens_per_second);
}

TEST_F(TiersVerb, AdaptersAreSmallToSave) {
  Job job{.model = "meta-llama/Llama-3.1-8B", .on = "1xH100"};
  job.task = "lora";
  const auto kinds = ask(job).checkpoint.kinds;
  ASSERT_FALSE(kinds.empty());
  EXPECT_LT(kinds[0].bytes, kGB);
}

TEST_F(TiersVerb, RowsOfTheUserAndBadStores) {
  environment.files["s.toml"] = "[[store]]\nid = \"ours\"\nread_gb = 10\nwrite_gb = 4\n";
  knowledge.add_rows("s.toml");
  Job job;
  job.checkpoint = 40 * kGB;
  job.store = "ours";
  EXPECT_DOUBLE_EQ(*ask(job).checkpoint.chosen->write_seconds, 10);
  EXPECT_DOUBLE_EQ(*ask(job).checkpoint.chosen->read_seconds, 4);
  job.store = "outs";
  EXPECT_THROW(ask(job), InputError);
}

}  // namespace
}  // namespace vram
