#include "api/claim.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "api/claim_grammar.h"
#include "base/error.h"
#include "model/model.h"

namespace vram {
namespace {

// --- the grammar ----------------------------------------------------------------------------------------------------

Slots digit_slot() {
  return {{"digit", [](std::string_view text, size_t at) -> std::vector<Taken> {
             if (at >= text.size() || text[at] < '0' || text[at] > '9') return {};
             return {{at + 1, std::string(1, text[at])}};
           }}};
}

Grammar small_grammar() {
  Grammar g;
  g.rule("fruit", {"apple | apples", "梨"}, {{"kind", "fruit"}});
  g.rule("none", {"[]"}, {{"none", "true"}});
  g.sentence("eat", {"i eat {<digit:n>} [very] (ripe | green) <fruit>", "吃 <fruit> [吗]"});
  g.sentence("nothing", {"nothing <none> here"});
  g.close({"digit"});
  return g;
}

TEST(Grammar, ReadsWhatItsPatternsSay) {
  const Grammar g = small_grammar();
  const auto r = g.parse("i eat 3 4 very ripe apples", digit_slot());
  EXPECT_EQ(r.sentence, "eat");
  ASSERT_EQ(r.meanings.size(), 3u);
  EXPECT_EQ(r.meanings[0].key, "n");
  EXPECT_EQ(r.meanings[0].value, "3");
  EXPECT_EQ(r.meanings[1].value, "4");
  EXPECT_EQ(r.meanings[2].value, "fruit");
  EXPECT_EQ(g.parse("i eat green apple", digit_slot()).sentence, "eat");
  EXPECT_EQ(g.parse("吃梨吗", digit_slot()).sentence, "eat");
  const auto nothing = g.parse("nothing here", digit_slot());
  EXPECT_EQ(nothing.sentence, "nothing");
  ASSERT_EQ(nothing.meanings.size(), 1u);
}

TEST(Grammar, RefusesAllElseAndTellsHowFarItCame) {
  const Grammar g = small_grammar();
  for (const char* text : {"", "i eat", "i eat ripe applesauce", "i eat ripe apples today", "eat ripe apples",
                           "i eatripe apples", "i eat ripe green apples", "i eat ripe apple-pie", "吃"}) {
    EXPECT_EQ(g.parse(text, digit_slot()).sentence, "") << text;
  }
  const auto r = g.parse("i eat 3 ripe pears", digit_slot());
  EXPECT_EQ(r.furthest, 13u);
  EXPECT_EQ(r.nearest, "eat");
  EXPECT_NE(std::find(r.expected.begin(), r.expected.end(), "apples"), r.expected.end());
}

TEST(Grammar, RefusesPatternsThatAreNone) {
  const auto closes = [](const std::string& pattern) {
    Grammar g;
    g.rule("a", {pattern});
    g.close({"digit"});
  };
  for (const char* bad : {"(a | b", "a ]", "<a", "<unknown>", "<a> b", "[c] <a>", "a | ", ""}) {
    EXPECT_THROW(closes(bad), std::logic_error) << bad;
  }
  EXPECT_NO_THROW(closes("b [<digit>] c"));
  Grammar twice;
  twice.rule("a", {"x"});
  EXPECT_THROW(twice.rule("a", {"y"}), std::logic_error);
}

TEST(Grammar, EndsOnSentencesMadeToBacktrack) {
  Grammar g;
  g.rule("x", {"a | a a | a a a"});
  g.sentence("s", {"{<x>} {<x>} {<x>} {<x>} b"});
  g.close({});
  std::string text;
  for (int i = 0; i < 200; ++i) text += "a ";
  EXPECT_EQ(g.parse(text, {}).sentence, "");
}

TEST(Sentence, IsLowerCaseHalfWidthWithoutMarks) {
  EXPECT_EQ(normal_sentence("  70B  trains, on “4×80GB”!  "), "70b trains on 4x80gb");
  EXPECT_EQ(normal_sentence("７０Ｂ 能在（4 张）80GB 上训练吗？"), "70b 能在 4 张 80gb 上训练吗");
  EXPECT_EQ(normal_sentence("8,192 tokens, v3.1."), "8,192 tokens v3.1");
  EXPECT_EQ(normal_sentence("a model’s"), "a model's");
  EXPECT_EQ(normal_sentence("張", {{"張", "张"}}), "张");
}

// --- claims ---------------------------------------------------------------------------------------------------------

Claim read(const std::string& text) { return parse_claim(text, Devices::builtin()); }

TEST(Claim, TakesASentenceApart) {
  Claim c = read("8xA100-80G serves Llama-3.1-70B at 32k for 64 users in fp8");
  EXPECT_EQ(c.kind, Claim::Kind::capacity);
  EXPECT_EQ(c.model, "meta-llama/Llama-3.1-70B");
  EXPECT_EQ(c.machine(), "8xA100-80G");
  EXPECT_EQ(c.task, "serve");
  EXPECT_EQ(c.context, 32768);
  EXPECT_EQ(c.users, 64);
  EXPECT_EQ(c.bits, "fp8");
  c = read("2 nodes of 8 H100s can't train a 175-billion-parameter model with 8-bit Adam");
  EXPECT_EQ(c.model, "175B");
  EXPECT_TRUE(c.size_only);
  EXPECT_TRUE(c.negated);
  EXPECT_EQ(c.machine(), "2x8xH100");
  EXPECT_EQ(c.optimizer, "adamw8bit");
  c = read("训练一千七百五十亿参数的模型至少需要四十张 80G 的卡");
  EXPECT_EQ(c.model, "175B");
  EXPECT_EQ(c.need, Need::at_least);
  EXPECT_EQ(c.count, 40);
  EXPECT_EQ(c.device, "80GB");
  c = read("a 7B model's Adam states are 56 GB, 4x the weights");
  EXPECT_EQ(c.kind, Claim::Kind::amount);
  EXPECT_EQ(c.quantity, "optimizer");
  EXPECT_EQ(c.amount_text, "56 GB");
  EXPECT_EQ(c.times, 4);
}

TEST(Claim, MachinesAreReadInManyForms) {
  const std::pair<const char*, const char*> forms[] = {{"4x80GB", "4x80GB"},
                                                       {"4 x 80 GB", "4x80GB"},
                                                       {"four 80GB cards", "4x80GB"},
                                                       {"4 cards of 80 GB", "4x80GB"},
                                                       {"4 GPUs with 80 GB each", "4x80GB"},
                                                       {"an H100", "1xH100"},
                                                       {"one 4090", "1x4090"},
                                                       {"a single RTX 4090", "1xRTX-4090"},
                                                       {"eight H100s", "8xH100"},
                                                       {"8 A100 80GB GPUs", "8xA100-80GB"},
                                                       {"16x8xH100", "16x8xH100"},
                                                       {"2 nodes of 8xH100", "2x8xH100"},
                                                       {"a 24 GB GPU", "1x24GB"},
                                                       {"48 GB of VRAM", "1x48GB"},
                                                       {"a node of 8 H100s", "8xH100"}};
  for (const auto& [text, machine] : forms) {
    EXPECT_EQ(read(std::string("7B trains on ") + text).machine(), machine) << text;
  }
  const std::pair<const char*, const char*> chinese[] = {{"4 张 80GB", "4x80GB"},
                                                         {"四张 80G 的卡", "4x80GB"},
                                                         {"4张80GB显存的显卡", "4x80GB"},
                                                         {"单张 48GB", "1x48GB"},
                                                         {"一块 4090", "1x4090"},
                                                         {"八卡 H100", "8xH100"},
                                                         {"十六张 A100-80G", "16xA100-80G"},
                                                         {"两台 8 卡 H100", "2x8xH100"},
                                                         {"4090 单卡", "1x4090"},
                                                         {"8×H100", "8xH100"},
                                                         {"２张 H100", "2xH100"}};
  for (const auto& [text, machine] : chinese) {
    EXPECT_EQ(read("7B 能在 " + std::string(text) + " 上训练").machine(), machine) << text;
  }
}

TEST(Claim, ModelsAreReadInManyForms) {
  const std::pair<const char*, const char*> forms[] = {{"70B", "70B"},
                                                       {"a 70B model", "70B"},
                                                       {"a 70B-parameter model", "70B"},
                                                       {"a model with 6.7 billion parameters", "6.7B"},
                                                       {"Llama 3 70B", "meta-llama/Meta-Llama-3-70B"},
                                                       {"llama-3.1-70b", "meta-llama/Llama-3.1-70B"},
                                                       {"the Mixtral-8x7B model", "mistralai/Mixtral-8x7B-v0.1"},
                                                       {"1T", "1T"},
                                                       {"DeepSeek V3", "deepseek-ai/DeepSeek-V3"}};
  for (const auto& [text, model] : forms) EXPECT_EQ(read(std::string(text) + " trains on 4x80GB").model, model) << text;
  const std::pair<const char*, const char*> chinese[] = {{"700亿参数模型", "70B"},
                                                         {"七十亿参数的大模型", "7B"},
                                                         {"1.5 万亿", "1500B"},
                                                         {"Qwen2.5-72B 模型", "Qwen/Qwen2.5-72B"}};
  for (const auto& [text, model] : chinese)
    EXPECT_EQ(read("4 张 80GB 能训练 " + std::string(text)).model, model) << text;
}

TEST(Claim, WhatIsOutsideIsRefusedInOneLine) {
  for (const char* text : {"",
                           "   ",
                           "hello",
                           "70B",
                           "70B trains",
                           "on 4x80GB",
                           "70B trains on",
                           "trains on 4x80GB",
                           "70B 4x80GB trains",
                           "70B trains on 4 cards",
                           "70B trains on 4x80GB 64",
                           "70B trains on 0x80GB",
                           "70B trains on 4x0GB",
                           "70B trains on 99999999x80GB",
                           "9999999999B trains on 4x80GB",
                           "70B trains on 4x80GB and serves on 2x80GB",
                           "70B trains on 4x80GB for 64 users",
                           "70B is served on 4x80GB with offload",
                           "70B trains in 4-bit on 4x80GB",
                           "70B serves on 4x80GB in fp32",
                           "70B trains on 4x80GB with offload without offload",
                           "70B trains on 4x80GB at 4k at 8k",
                           "the the 70B trains on 4x80GB",
                           "my 70B cat trains on 4x80GB",
                           "70B trains on 4x80GB -1",
                           "70B trains on -4x80GB",
                           "70B 在 4 张上训练",
                           "能训练 175B",
                           "你好",
                           "KV of Llama-3.1-8B is big",
                           "7B needs 56 GB of love",
                           "70B trains\xff on 4x80GB"}) {
    try {
      read(text);
      FAIL() << text;
    } catch (const InputError& e) {
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << text;
      EXPECT_EQ(e.fault().field, "claim") << text;
    }
  }
  EXPECT_THROW(read(std::string(100'000, 'a')), InputError);
}

TEST(Claim, RefusalsTellTheNearestNameAndThreeExamples) {
  const auto fault = [](const char* text) {
    try {
      read(text);
    } catch (const InputError& e) {
      return e.fault();
    }
    return Fault{};
  };
  EXPECT_EQ(fault("llama-3.1-70 trains on 8xH100").near_miss, "meta-llama/Llama-3.1-70B");
  EXPECT_EQ(fault("70B trians on 4x80GB").near_miss, "trains");
  EXPECT_EQ(fault("70B trains on 4xRTX409").near_miss, "rtx-4090");
  const Fault english = fault("70B trians on 4x80GB"), chinese = fault("70B 能在 4 张 80GB 上学习");
  EXPECT_NE(english.accepted.find("MODEL trains"), std::string::npos);
  EXPECT_GE(std::count(english.accepted.begin(), english.accepted.end(), '"'), 6);
  EXPECT_NE(chinese.accepted.find("张 80GB 能训练 175B"), std::string::npos);
}

TEST(Claim, ExamplesAndRowsReadAsThemselves) {
  const ClaimBook& book = ClaimBook::builtin();
  for (size_t i = 0; i < book.concepts.size(); ++i) {
    const ConceptClaim& row = book.concepts[i];
    for (const std::string& text : {row.claim_en, row.claim_zh, row.id}) {
      const Claim c = read(text);
      EXPECT_EQ(c.kind, Claim::Kind::concept_row) << text;
      EXPECT_EQ(c.row, i) << text;
      EXPECT_FALSE(c.right) << text;
    }
  }
  for (const ClaimForm& form : book.forms) {
    EXPECT_NE(read(form.example_en).kind, Claim::Kind::concept_row) << form.id;
    EXPECT_NE(read(form.example_zh).kind, Claim::Kind::concept_row) << form.id;
  }
}

TEST(Claim, StandInsHaveTheSizeTheyStandFor) {
  for (const ClaimBook::StandIn& s : ClaimBook::builtin().stand_ins) {
    const CatalogueEntry* entry = Catalogue::builtin().find(s.model);
    ASSERT_NE(entry, nullptr) << s.model;
    const auto parameters = static_cast<double>(Catalogue::builtin().model(*entry).counts.parameters);
    EXPECT_NEAR(parameters / static_cast<double>(s.size), 1, 0.25) << s.model;
  }
}

TEST(Claim, WordSaladIsNeverAnswered) {
  const std::vector<std::string> words = {"70B",   "trains", "on",    "4x80GB", "the", "can", "8",     "H100s", "serve",
                                          "needs", "only",   "KV",    "128k",   "at",  "能",  "训练",  "张",    "4-bit",
                                          "with",  "LoRA",   "users", "16",     "GB",  "of",  "cache", "在",    "上"};
  const std::vector<std::string> foreign = {"banana", "quickly", "7x",           "§",   "昨天", "<model>",
                                            "{",      "sudo",    "\xE2\x80\xAE", "-70B"};
  std::mt19937 random(20);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::string> salad;
    const size_t length = 2 + random() % 9;
    for (size_t k = 0; k < length; ++k) salad.push_back(words[random() % words.size()]);
    salad.insert(salad.begin() + static_cast<std::ptrdiff_t>(random() % salad.size()),
                 foreign[random() % foreign.size()]);
    std::string text;
    for (const std::string& w : salad) text += w + " ";
    EXPECT_THROW(read(text), InputError) << text;
  }
}

TEST(Claim, EveryWordOfAClaimCounts) {
  // Without any one of its words, or with a word twice, a claim is another claim or none.
  const std::vector<std::string> words = {"70B", "trains", "on", "4x80GB"};
  for (size_t left_out = 0; left_out < words.size(); ++left_out) {
    std::string text, doubled;
    for (size_t i = 0; i < words.size(); ++i) {
      if (i != left_out) text += words[i] + " ";
      doubled += words[i] + " " + (i == left_out ? words[i] + " " : "");
    }
    EXPECT_THROW(read(text), InputError) << text;
    EXPECT_THROW(read(doubled), InputError) << doubled;
  }
}

}  // namespace
}  // namespace vram
