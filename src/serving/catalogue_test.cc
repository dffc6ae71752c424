// Published models: what their layers cache, and that a single card holds exactly their table.
#include <gtest/gtest.h>

#include "serving/cache.h"
#include "serving/fixtures.h"
#include "serving/weights.h"

namespace vram {
namespace {

using fixtures::cards;
using fixtures::plan_of;

Model known(std::string_view id) {
  const CatalogueEntry* entry = Catalogue::builtin().find(id);
  if (!entry) throw std::logic_error("not in the catalogue: " + std::string(id));
  return Catalogue::builtin().model(*entry);
}

PreparedRank one_card(const Model& model, const Job& job = {}) {
  return prepare(plan_of(model, cards(1, 10'000 * kGiB), job)).ranks.front();
}

Bytes request(const Model& model, int64_t context) {
  return one_card(model, {.context = context}).request_bytes(context, 16);
}

TEST(Published, DeepSeekV3KeepsItsLatent) {
  EXPECT_EQ(request(known("deepseek-ai/DeepSeek-V3"), 16), 16 * 61 * 576 * 2);
}

// 61 layers of 576 numbers and an 8-bit index of 132 bytes.
TEST(Published, DeepSeekV32AddsItsIndex) {
  EXPECT_EQ(request(known("deepseek-ai/DeepSeek-V3.2"), 16), 16 * 61 * (576 * 2 + 132));
}

// 62 layers: 10 full, 52 with a window of 1024; 16 KV heads of 128.
TEST(Published, Gemma3SlidesItsWindow) {
  const Bytes token = 2 * 16 * 128 * 2;
  EXPECT_EQ(request(known("google/gemma-3-27b-it"), 512), 62 * 512 * token);
  EXPECT_EQ(request(known("google/gemma-3-27b-it"), 8192), (10 * 8192 + 52 * (1024 + 16)) * token);
}

// 48 layers: 12 full with 2 KV heads of 256, 36 gated delta nets with 32 states of 128 x 128 and a convolution over 3
// positions of 8192 channels.
TEST(Published, Qwen3NextKeepsStates) {
  const Model m = known("Qwen/Qwen3-Next-80B-A3B-Instruct");
  const PreparedRank rank = one_card(m);
  EXPECT_EQ(rank.state, 36 * (32 * 128 * 128 * 4 + 3 * 8192 * 2));
  EXPECT_EQ(rank.request_bytes(4096, 16) - rank.state, 4096 * 12 * 2 * 2 * 256 * 2);
  EXPECT_EQ(prepare(plan_of(m, cards(2, 200 * kGiB), {.tensor_parallel = 2})).ranks.front().state, rank.state / 2);
}

// DeepSeek-V3 in FP8 over 8 ranks: vLLM logs 640 GiB / 8 and more; the latent is on each of them.
TEST(Published, DeepSeekV3OverEightRanks) {
  const Model m = known("deepseek-ai/DeepSeek-V3");
  const ServePlan plan = plan_of(m, cards(8, 141 * kGiB), {.tensor_parallel = 8});
  const PreparedRank rank = prepare(plan).ranks.front();
  EXPECT_EQ(rank.request_bytes(16, 16), 16 * 61 * 576 * 2);
  EXPECT_GT(8 * rank.weights, m.counts.loaded_bytes);
  EXPECT_LT(8 * rank.weights, m.counts.loaded_bytes / 100 * 103);
}

// Llama-3.1-70B: 16 ranks replicate its 8 KV heads twice.
TEST(Published, Llama70BReplicatesKvHeads) {
  const Model m = known("meta-llama/Llama-3.1-70B");
  const auto at = [&](int64_t tp) {
    return prepare(plan_of(m, cards(16, 80 * kGiB), {.tensor_parallel = tp})).ranks.front().request_bytes(16, 16);
  };
  EXPECT_EQ(at(8), 16 * 80 * 2 * 128 * 2);
  EXPECT_EQ(at(16), at(8));
}

// One card loads every learned tensor and scale once, and pads the vocabulary.
TEST(Published, OneCardHoldsTheTableOfEveryModel) {
  const Catalogue& catalogue = Catalogue::builtin();
  ASSERT_GE(catalogue.entries().size(), 150u);
  for (const CatalogueEntry& entry : catalogue.entries()) {
    const Model m = catalogue.model(entry);
    Bytes padding = 0;
    for (const TensorGroup& g : m.tensors) {
      if (g.part == TensorGroup::Part::mtp) continue;
      for (const Tensor& t : g.tensors) {
        if (t.shard != Shard::vocab || !t.learned) continue;
        const int64_t rows = t.shape.front();
        padding += g.times() * (ceil_div(t.stored_bytes * round_up(rows, 64), rows) - t.stored_bytes);
      }
    }
    EXPECT_EQ(one_card(m, {.weights_dtype = "checkpoint"}).weights, m.counts.loaded_bytes + padding) << entry.id;
  }
}

// What is cached per token equals what the layers say, in 16 bits, where there is neither window nor index.
TEST(Published, CachesAreWhatTheLayersSay) {
  const Catalogue& catalogue = Catalogue::builtin();
  int compared = 0;
  for (const CatalogueEntry& entry : catalogue.entries()) {
    const Model m = catalogue.model(entry);
    int64_t elements = 0;
    bool plain = true;
    for (int64_t i = 0; i < m.layers(); ++i) {
      const LayerKind& kind = m.layer(i);
      elements += kind.encoder ? 0 : kind.attention.cache_elements_per_token();
      plain &= kind.attention.index_head_dim == 0 && kind.attention.compress_ratio == 0 && !kind.attention.cross;
    }
    if (!plain) continue;
    ++compared;
    const PreparedRank rank = one_card(m, {.kv_dtype = "bf16", .context = 16});
    EXPECT_EQ(rank.request_bytes(16, 16) - rank.state, 16 * elements * 2) << entry.id;
  }
  EXPECT_GE(compared, 100);
}

// Every way to spread every model keeps the whole of it.
TEST(Published, RanksTogetherHoldEveryModel) {
  const Catalogue& catalogue = Catalogue::builtin();
  for (const CatalogueEntry& entry : catalogue.entries()) {
    const Model m = catalogue.model(entry);
    for (const Parallel& p : parallel_choices(m, 8, 8, {0, 0, 0, 1})) {
      if (p.data != 1) continue;
      const ServePlan plan =
          plan_of(m, cards(8, 200 * kGiB),
                  {.tensor_parallel = p.tensor, .pipeline_parallel = p.pipeline, .weights_dtype = "checkpoint"});
      const Prepared prepared = prepare(plan);
      Bytes sum = 0;
      for (size_t i = 0; i < prepared.ranks.size(); ++i) sum += prepared.ranks[i].weights * prepared.classes[i].ranks;
      EXPECT_GE(sum, m.counts.loaded_bytes) << entry.id << " " << p.tensor << " x " << p.pipeline;
    }
  }
}

}  // namespace
}  // namespace vram
