#include "api/check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "api/call.h"
#include "api/check_amount.h"
#include "api/serve.h"
#include "base/error.h"
#include "machine/fake_environment.h"

namespace vram {
namespace {

CheckAnswer check(std::string_view claim) {
  static const FakeEnvironment environment;
  static const Knowledge knowledge(environment);
  return answer_check(claim, knowledge);
}

const CheckReading& reading(const CheckAnswer& a, std::string_view id) {
  return *std::find_if(a.readings.begin(), a.readings.end(), [&](const CheckReading& r) { return r.id == id; });
}

bool has_reason(const CheckAnswer& a, std::string_view id) {
  return std::any_of(a.reasons.begin(), a.reasons.end(), [&](const Note& n) { return n.id == id; });
}

// Verdicts that arithmetic gives: 16 bytes a parameter against the cards in training, 2, 1 or about half a byte in
// serving, 2·L·n_kv·d·b of KV a token. Where a claim leaves open what decides, it is doubtful.
struct Row {
  const char* claim;
  Verdict verdict;
};
const Row kClaims[] = {
    {"70B trains on 4x80GB", Verdict::is_false},
    {"a 70B model can be trained on four 80 GB cards", Verdict::is_false},
    {"Can I train a 70B model on 4x80GB?", Verdict::is_false},
    {"You can fine-tune Llama-3.1-8B on a single RTX 4090", Verdict::doubtful},
    {"Llama-3.1-8B fine-tunes on one 4090 with QLoRA", Verdict::is_true},
    {"QLoRA fits 65B on 48 GB", Verdict::is_true},
    {"QLoRA fine-tuning of 65B fits on a single 48 GB card", Verdict::is_true},
    {"A single 48 GB card can QLoRA a 65B model", Verdict::is_true},
    {"Four 80 GB cards train a 175B model", Verdict::is_false},
    {"Four 80GB GPUs can serve a 175B model in 8-bit", Verdict::is_true},
    {"4x80GB can serve 175B in 4-bit", Verdict::is_true},
    {"Llama-3.1-70B fits on 2x80GB", Verdict::doubtful},
    {"Llama-3.1-70B runs on one 80GB card in int4", Verdict::is_true},
    {"Llama-3.1-70B does not fit on a single 80GB card", Verdict::doubtful},
    {"Llama-3.1-70B can't be trained on 8 H100s", Verdict::is_true},
    {"8 H100s are enough to train Llama-3.1-70B", Verdict::is_false},
    {"8 H100s are enough to serve Llama-3.1-405B in fp8", Verdict::is_true},
    {"is one H100 enough to serve Llama-3.1-8B at 128k?", Verdict::is_true},
    {"training 70B needs at least 14 cards of 80 GB", Verdict::is_true},
    {"training a 7B model needs only 1x80GB", Verdict::is_false},
    {"training Llama-3.1-8B needs 2 H100s", Verdict::is_true},
    {"Llama-3.1-70B inference needs 2 H100s", Verdict::is_true},
    {"Llama-3.1-70B only needs 2 H100s", Verdict::doubtful},
    {"70B needs only 4x80GB", Verdict::doubtful},
    {"7B needs only one 4090", Verdict::doubtful},
    {"Mixtral-8x7B can be served on 2x80GB", Verdict::is_true},
    {"DeepSeek-V3 runs on 8 H200s", Verdict::is_true},
    {"DeepSeek-V3 fits on 8xH100", Verdict::doubtful},
    {"gpt2 trains on one 4090", Verdict::is_true},
    {"with 8 H100s you can train Llama-3.1-8B", Verdict::is_true},
    {"To train 70B you need 16 H100s", Verdict::is_true},
    {"We can serve Llama-3.1-8B at 8k for 100 users on one H100", Verdict::is_false},
    {"one H100 serves 1000 users with Llama-3.1-8B at 8k", Verdict::is_false},
    {"Qwen2.5-7B trains on 8x24GB without offload", Verdict::is_true},
    {"7B trains on one 24GB card with offload", Verdict::is_true},
    {"7B trains on a 4090 with 8-bit Adam", Verdict::is_false},
    {"13B can be fine-tuned with LoRA on an A100", Verdict::is_true},
    {"13B fine-tunes on one A100-80G", Verdict::doubtful},
    {"it is impossible to train 175B on 4x80GB", Verdict::is_true},
    {"it is possible to train 175B on 4x80GB with ZeRO-Infinity", Verdict::is_true},
    {"70B trains with optimizer offload on 4x80GB", Verdict::is_true},
    {"2 nodes of 8 H100s train Llama-3.1-70B", Verdict::is_true},
    {"16x8xH100 pre-trains Llama-3.1-70B", Verdict::is_true},
    {"Llama-3.1-405B trains on 16x8xH100", Verdict::is_true},
    {"7B is trainable on a single A100", Verdict::is_false},
    {"full fine-tuning of 7B fits on 2x80GB", Verdict::is_true},
    {"LoRA fine-tuning 70B requires 2x80GB", Verdict::doubtful},
    {"Llama 3 70B runs on 48GB in 4-bit", Verdict::is_true},
    {"175 billion parameters train on 4 80GB cards", Verdict::is_false},
    {"a model with 7 billion parameters fits in 24 GB", Verdict::is_true},
    {"8xA100-80G serves Llama-3.1-70B at 32k for 64 users", Verdict::is_false},
    {"8xA100-80G serves Llama-3.1-70B at 32k for 40 users", Verdict::is_true},
    {"Llama-3-8B needs 16 GB of KV at 128K", Verdict::is_true},
    {"a 7B model at 128K needs 16 GB of KV", Verdict::doubtful},
    {"7B at 128k needs 64 GB of KV cache", Verdict::doubtful},
    {"the KV cache of Llama-3.1-8B at 128k is 16 GiB", Verdict::is_true},
    {"Llama-3.1-70B's KV cache at 32k takes 10.7 GB", Verdict::is_true},
    {"a 7B model's Adam states are 56 GB, 4x the weights", Verdict::is_false},
    {"7B needs 84 GB of optimizer states", Verdict::is_true},
    {"the optimizer states of a 7B model are 84 GB, 6x the weights", Verdict::is_true},
    {"7B weights are 14 GB", Verdict::is_true},
    {"70B weights in 4-bit are 35 GB", Verdict::doubtful},
    {"Llama-3.1-8B weights in int4 are 4 GB", Verdict::doubtful},
    {"7B needs 112 GB of model states", Verdict::is_true},
    {"the model states of 70B are 1120 GB", Verdict::is_true},
    {"7B model states are 126 GB", Verdict::doubtful},
    {"the gradients of 7B are 14 GB", Verdict::is_true},
    {"4 张 80GB 能训练 175B", Verdict::is_false},
    {"四张 80GB 的卡能训练 175B 模型", Verdict::is_false},
    {"用 4 张 80GB 可以训练 70B 吗？", Verdict::is_false},
    {"70B 能在 4 张 80GB 上训练", Verdict::is_false},
    {"70B 模型可以在４张８０ＧＢ的卡上训练", Verdict::is_false},
    {"4 张 80GB 不能训练 175B", Verdict::is_true},
    {"4张80GB训不动70B", Verdict::is_true},
    {"单张 48GB 可以 QLoRA 微调 65B", Verdict::is_true},
    {"一张 4090 能微调 7B", Verdict::doubtful},
    {"一张 4090 就能跑 Llama-3.1-8B", Verdict::is_true},
    {"单卡 4090 放得下 7B", Verdict::is_true},
    {"4090 单卡能跑 13B 吗", Verdict::doubtful},
    {"8 张 H100 能训练 Llama-3.1-8B", Verdict::is_true},
    {"八卡 A100 能训练 700 亿参数的模型", Verdict::is_false},
    {"8 卡 H100 部署 DeepSeek-V3", Verdict::doubtful},
    {"训练 70B 至少需要 14 张 80GB", Verdict::is_true},
    {"训练 70B 只需要 4 张 80GB", Verdict::is_false},
    {"训练七十亿参数模型只需一张 80GB 的卡", Verdict::is_false},
    {"70B 推理只需要 2 张 H100", Verdict::is_true},
    {"70B 只需要 2 张 H100", Verdict::doubtful},
    {"Llama-3.1-70B 量化到 4bit 能在一张 80GB 卡上部署", Verdict::is_true},
    {"8xA100-80G 能以 32k 上下文服务 64 个用户的 Llama-3.1-70B", Verdict::is_false},
    {"8xA100-80G 在 32k 上下文下能给 40 个用户服务 Llama-3.1-70B", Verdict::is_true},
    {"用 8 张 H100 全量微调 70B", Verdict::is_false},
    {"两台 8 卡 H100 能训练 70B", Verdict::is_true},
    {"4 張 80GB 能訓練 175B", Verdict::is_false},
    {"4 张 80GB 配合卸载能训练 70B", Verdict::is_true},
    {"70B 用 LoRA 能在 4 张 80GB 上微调", Verdict::is_true},
    {"Llama-3-8B 在 128K 下需要 16 GB 的 KV 缓存", Verdict::is_true},
    {"7B 模型的 Adam 状态是 56 GB", Verdict::is_false},
    {"7B 模型的 Adam 状态是 84 GB，是权重的 6 倍", Verdict::is_true},
    {"70B 的模型状态是 1120 GB", Verdict::is_true},
    {"7B 的权重占 14 GB", Verdict::is_true},
    {"70B 权重用 int4 是 35 GB", Verdict::doubtful},
    {"训练 7B 需要 112 GB 显存", Verdict::is_true},
    {"7B 推理需要 14 GB 显存", Verdict::doubtful},
    {"training 7B needs 112 GB of GPU memory", Verdict::is_true},
    {"7B needs 24 GB to run", Verdict::is_true},
};

TEST(Check, ManyPhrasings) {
  for (const Row& row : kClaims) {
    try {
      EXPECT_EQ(verdict_name(check(row.claim).verdict), verdict_name(row.verdict)) << row.claim;
    } catch (const InputError& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

TEST(Check, SeventyBillionOnFourCards) {
  const CheckAnswer a = check("70B trains on 4x80GB");
  // 16 bytes a parameter: 1.12 TB, 280 GB a card.
  EXPECT_EQ(a.states, 1'120'000'000'000);
  EXPECT_EQ(a.states_per_card, 280'000'000'000);
  EXPECT_EQ(a.stand_in, "meta-llama/Llama-3.1-70B");
  EXPECT_TRUE(reading(a, "full").claimed);
  EXPECT_EQ(reading(a, "full").holds, Verdict::is_false);
  EXPECT_EQ(reading(a, "offload").holds, Verdict::is_true);
  EXPECT_EQ(reading(a, "lora").holds, Verdict::is_true);
  EXPECT_EQ(reading(a, "serving").holds, Verdict::is_true);
  // 4 bytes a parameter stay on the cards: 70 GB each and the activations.
  EXPECT_GT(reading(a, "offload").row.needed, 70'000'000'000);
  EXPECT_EQ(a.exit(), Exit::no);
}

TEST(Check, HundredSeventyFiveBillionOnFourCards) {
  const CheckAnswer a = check("Four 80 GB cards train a 175B model");
  EXPECT_EQ(a.states, 2'800'000'000'000);
  EXPECT_EQ(reading(a, "full").holds, Verdict::is_false);
  // 87.5 GB a card of 16-bit weights, 43.8 GB of 8-bit ones.
  EXPECT_EQ(reading(a, "serving").holds, Verdict::is_false);
  EXPECT_EQ(reading(a, "quantized_serving").holds, Verdict::is_true);
  // With everything on the host it runs, with terabytes of host memory.
  EXPECT_EQ(reading(a, "offload").holds, Verdict::is_true);
  EXPECT_GT(reading(a, "offload").row.host_per_node, 2'000'000'000'000);
  EXPECT_EQ(check("175B trains with optimizer offload on 4x80GB").verdict, Verdict::is_false);
}

TEST(Check, TheAccountIsThatOfFit) {
  Job job;
  job.model = "meta-llama/Llama-3.1-70B";
  job.on = "8xH100";
  const FakeEnvironment environment;
  const FitAnswer fit = answer_fit(job, Knowledge(environment));
  const CheckAnswer a = check("Llama-3.1-70B trains on 8xH100");
  const auto row = [&](std::string_view id) {
    return *std::find_if(fit.rows.begin(), fit.rows.end(), [&](const FitRow& r) { return r.id == id; });
  };
  const std::pair<const char*, const char*> same[] = {
      {"full", "full"}, {"lora", "lora"}, {"qlora", "qlora"}, {"offload", "full_offload"}, {"serving", "serve_bf16"}};
  for (const auto& [mine, theirs] : same) {
    EXPECT_EQ(reading(a, mine).row.needed, row(theirs).needed) << mine;
    EXPECT_EQ(reading(a, mine).row.fits, row(theirs).fits) << mine;
    EXPECT_EQ(reading(a, mine).row.cards_needed, row(theirs).cards_needed) << mine;
  }
}

TEST(Check, NegationTurnsTheVerdict) {
  const std::pair<const char*, const char*> pairs[] = {
      {"70B trains on 4x80GB", "70B does not train on 4x80GB"},
      {"7B can be served on one H100", "7B can't be served on one H100"},
      {"4 张 80GB 能训练 175B", "4 张 80GB 无法训练 175B"},
      {"it is possible to train 70B on 4x80GB", "it is impossible to train 70B on 4x80GB"}};
  for (const auto& [plain, negated] : pairs) {
    const Verdict a = check(plain).verdict, b = check(negated).verdict;
    EXPECT_NE(a, Verdict::doubtful) << plain;
    EXPECT_EQ(a == Verdict::is_true, b == Verdict::is_false) << negated;
  }
}

TEST(Check, AtLeastMeansThatFewerDoNotDo) {
  // 112 GB of states: one card of 80 GB is too small, two are enough.
  EXPECT_EQ(check("training 7B needs at least 2 cards of 80 GB").verdict, Verdict::is_true);
  EXPECT_EQ(check("training 7B needs at least 8 cards of 80 GB").verdict, Verdict::is_false);
  EXPECT_EQ(check("training 7B needs only 8 cards of 80 GB").verdict, Verdict::is_true);
  const CheckAnswer a = check("training 7B needs 8 cards of 80 GB");
  EXPECT_EQ(a.verdict, Verdict::doubtful);
  EXPECT_TRUE(has_reason(a, "check.why.fewer"));
}

TEST(Check, WhatIsLeftUnsaidIsDoubtfulAndNamed) {
  EXPECT_TRUE(has_reason(check("Llama-3.1-8B fine-tunes on one 4090"), "check.why.method"));
  EXPECT_TRUE(has_reason(check("Llama-3.1-70B runs on one 80GB card"), "check.why.precision"));
  EXPECT_TRUE(has_reason(check("70B needs only 2 H100s"), "check.why.task"));
  EXPECT_TRUE(has_reason(check("a 7B model needs 16 GB of KV at 128k"), "check.why.kv_heads"));
  EXPECT_TRUE(has_reason(check("70B weights in int4 are 35 GB"), "check.why.scales"));
  EXPECT_TRUE(has_reason(check("7B model states are 126 GB"), "check.why.gradients"));
  EXPECT_TRUE(has_reason(check("a 7B model's Adam states are 56 GB"), "check.why.master"));
}

TEST(Check, KvIsExact) {
  // 2 · 32 layers · 8 heads · 128 · 2 bytes = 131,072 bytes a token.
  const CheckAnswer a = check("Llama-3-8B needs 16 GB of KV at 128K");
  ASSERT_EQ(a.amounts.size(), 1u);
  EXPECT_EQ(a.amounts[0].bytes, Bytes{16} * kGiB);
  EXPECT_TRUE(a.amounts[0].binary);
  const CheckAnswer seven = check("a 7B model at 128K needs 16 GB of KV");
  ASSERT_EQ(seven.amounts.size(), 2u);
  EXPECT_EQ(seven.amounts[0].bytes, Bytes{64} * kGiB);
  EXPECT_EQ(seven.amounts[1].bytes, Bytes{16} * kGiB);
  EXPECT_EQ(check("Llama-3.1-8B needs 160 GiB of KV at 128k for 10 requests").verdict, Verdict::is_true);
  EXPECT_EQ(check("the KV cache of Llama-3.1-8B at 128k in fp8 is 8 GiB").verdict, Verdict::is_true);
  EXPECT_EQ(check("Llama-3.1-8B needs 20 GB of KV at 128K").verdict, Verdict::is_false);
  EXPECT_EQ(check("7B needs 30 GB of KV at 128K").verdict, Verdict::is_false);
}

TEST(Check, AmountsMatchAsPeopleRound) {
  bool binary = false;
  EXPECT_TRUE(amount_matches("10.7 GB", 10'737'418'240, binary));
  EXPECT_FALSE(binary);
  EXPECT_TRUE(amount_matches("10 GB", 10'737'418'240, binary));
  EXPECT_TRUE(binary);
  EXPECT_FALSE(amount_matches("10.3 GB", 10'737'418'240, binary));
  EXPECT_TRUE(amount_matches("1.1 TB", 1'120'000'000'000, binary));
  EXPECT_FALSE(amount_matches("1 GB", 1'300'000'000, binary));
  EXPECT_FALSE(amount_matches("10 GiB", 10'000'000'000, binary));
  EXPECT_TRUE(amount_matches("128 KiB", 131'072, binary));
}

TEST(Check, EveryRowIsAnsweredWithItsFigures) {
  for (const ConceptClaim& row : ClaimBook::builtin().concepts) {
    const CheckAnswer a = check(row.claim_en);
    EXPECT_EQ(verdict_name(a.verdict), row.verdict) << row.id;
    for (const std::string& text : {a.truth_en, a.truth_zh}) {
      EXPECT_GT(text.size(), 40u) << row.id;
      EXPECT_EQ(text.find('{'), std::string::npos) << text;
    }
    EXPECT_EQ(row.figures.empty(), a.commands.empty()) << row.id;
    for (const ConceptClaim::Figure& f : row.figures) {
      EXPECT_NE(row.truth_en.find("{" + f.name + "}"), std::string::npos) << row.id << " " << f.name;
      EXPECT_NE(row.truth_zh.find("{" + f.name + "}"), std::string::npos) << row.id << " " << f.name;
    }
  }
}

TEST(Check, WhatIsSaidRightlyIsTrue) {
  for (const char* claim :
       {"the KV cache grows linearly with the context", "ZeRO-3 shards the model states", "InfiniBand 400 is 50 GB/s",
        "Adam states are 6x the weights", "ZeRO-1 and ZeRO-2 send as much as data parallelism",
        "recompute pays when more than 25 % of throughput is lost otherwise", "Flash Attention removes the 5as/h term",
        "pipeline parallelism does not divide activations", "KV can be recomputed after preemption",
        "KV 缓存随上下文长度线性增长", "ZeRO-3 切分了模型状态", "Adam 状态是权重的 6 倍"}) {
    EXPECT_EQ(check(claim).verdict, Verdict::is_true) << claim;
  }
}

TEST(Check, AnswersTheLibraryCall) {
  const FakeEnvironment environment;
  const Knowledge knowledge(environment);
  const Reply no = call(Document::Object{{"verb", "check"}, {"claim", "70B trains on 4x80GB"}}, knowledge);
  EXPECT_EQ(no.status, Exit::no);
  EXPECT_EQ(no.answer.find("verdict")->string(), "false");
  const Reply list = call(Document::Object{{"verb", "check"}, {"list", true}}, knowledge);
  EXPECT_EQ(list.answer.find("claims")->array().size(), ClaimBook::builtin().concepts.size());
  EXPECT_THROW(call(Document::Object{{"verb", "check"}}, knowledge), InputError);
}

}  // namespace
}  // namespace vram
