#include "stacks/stacks.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace vram {
namespace {

TEST(Stacks, EveryFolderReadsAndIsItsOwn) {
  for (std::string_view name : stack_names()) {
    const Rules rules = stack_rules(name, Constants::builtin());
    EXPECT_EQ(rules.stack, name);
    EXPECT_FALSE(rules.source.empty());
    for (const std::string& id : rules.workspace_constants) {
      const size_t star = id.find(".*");
      if (star != std::string::npos) {
        EXPECT_NO_THROW(Constants::builtin().get(id.substr(0, star) + ".default")) << id;
      } else {
        EXPECT_NO_THROW(Constants::builtin().get(id)) << id;
      }
    }
  }
}

TEST(Stacks, DifferWhereTheFrameworksDo) {
  const Constants& constants = Constants::builtin();
  EXPECT_EQ(stack_rules("megatron", constants).gradient_bytes, 4);
  EXPECT_TRUE(stack_rules("megatron", constants).gradients_from_start);
  EXPECT_TRUE(stack_rules("fsdp", constants).weight_is_master);
  EXPECT_EQ(stack_rules("fsdp", constants).default_zero, 3);
  EXPECT_FALSE(stack_rules("transformers", constants).kernels.norm_fused);
  // Two reduce buckets of 5e8 16-bit elements.
  const Rules deepspeed = stack_rules("deepspeed", constants);
  ASSERT_EQ(deepspeed.buckets.size(), 2u);
  EXPECT_EQ(deepspeed.buckets[0].value, 1'000'000'000);
}

TEST(Stacks, UnknownNamesGetANearMiss) {
  try {
    stack_rules("megatorn", Constants::builtin());
    FAIL();
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("Did you mean megatron?"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace vram
