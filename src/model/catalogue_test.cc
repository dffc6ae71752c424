#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

#include "base/error.h"
#include "formats/formats.h"
#include "model/model.h"

namespace vram {
namespace {

TEST(Catalogue, EveryEntryIsAModelOfAKnownFamily) {
  const Catalogue& c = Catalogue::builtin();
  EXPECT_GE(c.entries().size(), 150u);
  for (const CatalogueEntry& entry : c.entries()) {
    SCOPED_TRACE(std::string(entry.id));
    Model m;
    ASSERT_NO_THROW(m = c.model(entry));
    EXPECT_TRUE(m.family_known);
    EXPECT_TRUE(m.shape_known);
    EXPECT_FALSE(m.source.empty());
    EXPECT_EQ(m.origin, "catalogue");
    EXPECT_EQ(m.name, entry.id);
    EXPECT_GT(m.counts.parameters, 1'000'000);
    EXPECT_GT(m.layers(), 0);
    EXPECT_EQ(m.assumed(Lang::en), m.assumptions);
    EXPECT_EQ(m.assumed(Lang::zh).size(), m.assumptions.size());
  }
}

TEST(Catalogue, NamesAreUniqueAndFound) {
  const Catalogue& c = Catalogue::builtin();
  std::set<std::string_view> names;
  for (const CatalogueEntry& entry : c.entries()) {
    EXPECT_TRUE(names.insert(entry.id).second) << entry.id;
    EXPECT_EQ(c.find(entry.id), &entry) << entry.id;
    for (std::string_view alias : entry.aliases) {
      EXPECT_TRUE(names.insert(alias).second) << alias;
      EXPECT_EQ(c.find(alias), &entry) << alias;
    }
  }
}

TEST(Catalogue, FindsWhatPeopleType) {
  const Catalogue& c = Catalogue::builtin();
  const auto id = [&](std::string_view name) {
    const CatalogueEntry* e = c.find(name);
    return e ? std::string(e->id) : std::string();
  };
  EXPECT_EQ(id("llama-3.1-8b"), "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(id("llama3.1:70b"), "meta-llama/Llama-3.1-70B");
  EXPECT_EQ(id("Llama 3.1 70B"), "meta-llama/Llama-3.1-70B");
  EXPECT_EQ(id("meta-llama/Llama-3.1-8B-Instruct"), "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(id("qwen2.5-7b"), "Qwen/Qwen2.5-7B");
  EXPECT_EQ(id("deepseek-v3"), "deepseek-ai/DeepSeek-V3");
  EXPECT_EQ(id("gpt3"), "openai/gpt3-175B");
  EXPECT_EQ(id("gpt3-175b"), "openai/gpt3-175B");
  EXPECT_EQ(id("GPT2-XL"), "openai-community/gpt2-xl");
  EXPECT_EQ(id("llama-7b"), "huggyllama/llama-7b");
  EXPECT_EQ(id("llama-33b"), "huggyllama/llama-30b");
  EXPECT_EQ(id("opt-13b"), "facebook/opt-13b");
  EXPECT_EQ(id("opt-1.3b"), "facebook/opt-1.3b");
  EXPECT_EQ(id(""), "");
  EXPECT_EQ(id("llama-3.1-9b"), "");
}

TEST(Catalogue, KnowsWhatFilesHoldBesides) {
  const Catalogue& c = Catalogue::builtin();
  EXPECT_EQ(c.stores("openai-community/gpt2"), std::vector<std::string>{"causal_mask"});
  EXPECT_TRUE(c.stores("meta-llama/Llama-3.1-8B").empty());
  EXPECT_TRUE(c.stores("./my-model").empty());
}

TEST(Catalogue, LookupAndModelTakeMilliseconds) {
  using Clock = std::chrono::steady_clock;
  const Catalogue& c = Catalogue::builtin();
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto begin = Clock::now();
    const Model m = c.model(*c.find("kimi-k2"));  // a trillion parameters
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
    EXPECT_GT(m.counts.parameters, 1'000'000'000'000);
  }
  // Well under a millisecond in an optimised build; sanitizers are allowed twenty times as much.
  EXPECT_LT(best, 0.02);
}

}  // namespace
}  // namespace vram
