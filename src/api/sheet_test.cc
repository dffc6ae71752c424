#include "api/sheet.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "api/command.h"
#include "machine/fake_environment.h"

namespace vram {
namespace {

class Sheet : public ::testing::Test {
 protected:
  FakeEnvironment environment;
  Knowledge knowledge{environment};
};

TEST_F(Sheet, TheAccountsAreThoseOfTheVerbs) {
  Job job{.model = "meta-llama/Llama-3.1-8B", .on = "8xH100"};
  job.zero = 3;
  job.recompute = "full";
  job.tensor_parallel = 1;
  job.pipeline_parallel = 1;
  job.tokens = 1e12;
  job.price = 2.5;
  const SheetAnswer a = answer_sheet(job, knowledge);
  EXPECT_TRUE(a.chosen.empty());
  const TrainAnswer t = answer_train(job, knowledge);
  EXPECT_EQ(a.training.device.bytes, t.device.bytes);
  EXPECT_EQ(a.training.time->seconds, t.time->seconds);
  Job service = job;
  service.tensor_parallel.reset();
  service.pipeline_parallel.reset();
  EXPECT_EQ(a.serving.largest_concurrency, answer_serve(service, knowledge).largest_concurrency);
  // One accounting of money, too: train prices the same hours.
  ASSERT_TRUE(a.cost && t.time->price);
  EXPECT_TRUE(a.cost->given);
  EXPECT_DOUBLE_EQ(a.cost->low, *t.time->price);
  EXPECT_DOUBLE_EQ(a.cost->high, *t.time->price);
}

TEST_F(Sheet, WhatIsOpenIsChosenAndSaid) {
  const SheetAnswer a = answer_sheet({.model = "7B", .on = "8xA100-80G"}, knowledge);
  // 112 GB of states and 16 cards' worth of nothing else: one card is too small, so the states are sharded.
  EXPECT_EQ(a.training.plan.zero, 3);
  EXPECT_NE(std::find(a.chosen.begin(), a.chosen.end(), "--zero 3"), a.chosen.end());
  EXPECT_TRUE(a.tokens_assumed);
  EXPECT_EQ(*a.training.tokens, 20 * 7e9);
  // The rent of the device's row brackets the cost.
  ASSERT_TRUE(a.cost);
  EXPECT_FALSE(a.cost->given);
  EXPECT_DOUBLE_EQ(a.cost->low, a.training.time->card_hours * a.cost->price_low);
  EXPECT_LT(a.cost->low, a.cost->high);
  for (Lang lang : {Lang::en, Lang::zh}) {
    const auto assumed = a.assumed(lang);
    EXPECT_NE(assumed.front().find("--zero 3"), std::string::npos);
    auto unique = assumed;
    std::sort(unique.begin(), unique.end());
    EXPECT_EQ(std::unique(unique.begin(), unique.end()), unique.end());
  }
}

TEST_F(Sheet, TrainingsDegreesAreNotTheServices) {
  Job job{.model = "meta-llama/Llama-3.1-8B", .on = "2x8xH100"};
  job.tensor_parallel = 8;
  job.pipeline_parallel = 2;
  const SheetAnswer a = answer_sheet(job, knowledge);
  EXPECT_EQ(a.training.plan.tp, 8);
  EXPECT_EQ(a.training.plan.pp, 2);
  EXPECT_LT(a.serving.plan.parallel.tensor * a.serving.plan.parallel.pipeline, 16);
}

TEST_F(Sheet, MemoryAloneHasNoTimeAndNoPrice) {
  const SheetAnswer a = answer_sheet({.model = "70B", .on = "4x80GB"}, knowledge);
  EXPECT_FALSE(a.fits());
  EXPECT_EQ(a.exit(), Exit::no);
  EXPECT_FALSE(a.cost);
  EXPECT_FALSE(a.training.time);
  // 16 bytes a parameter over four cards.
  EXPECT_EQ(a.training.states.total(), 280 * kGB);
}

TEST_F(Sheet, RefusesAsTheVerbsDo) {
  EXPECT_THROW(answer_sheet({.model = "7B"}, knowledge), InputError);
  EXPECT_THROW(answer_sheet({.on = "8xH100"}, knowledge), InputError);
  EXPECT_THROW(answer_sheet({.model = "no/such-model", .on = "8xH100"}, knowledge), InputError);
}

TEST(CommandLine, SaysTheJobAgain) {
  Job job{.model = "my models/x", .on = "8xH100"};
  job.set = {"kv_heads=8", "a=[1, 2]"};
  job.zero = 3;
  job.tokens = 1.5e12;
  job.mfu = 0.45;
  job.offload = {"optimizer", "parameters"};
  job.textbook = true;
  job.context = 8192;  // serving's
  EXPECT_EQ(command_line(Verb::train, "train", job),
            "vram train 'my models/x' --set kv_heads=8 --set 'a=[1, 2]' --on 8xH100 --zero 3 --offload "
            "optimizer,parameters --tokens 1.5T --mfu 0.45 --textbook");
  // Every field's text, read again, gives the same job.
  Job again;
  for (const Field& f : fields()) {
    if (f.is_set(job)) set_field(again, f, field_text(f, job), f.name);
  }
  EXPECT_TRUE(same_values(write_job(job), write_job(again)));
  Job other;
  for (const Field& f : fields()) copy_field(f, job, other);
  EXPECT_TRUE(same_values(write_job(job), write_job(other)));
}

}  // namespace
}  // namespace vram
