#include "report/serve.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "serving/fixtures.h"

namespace vram {
namespace {

Machine h100s(int64_t n) {
  Machine m = fixtures::cards(n, 80 * kGiB);
  m.device = Devices::builtin().get("H100");
  m.intra_node = m.device.scale_up.value();
  m.text = std::to_string(n) + "xH100";
  return m;
}

Model hybrid() {
  const fixtures::Shape shape{.layers = 8, .heads = 16, .kv_heads = 2, .vocab = 1000};
  std::vector<Attention> kinds(5, fixtures::attention_of(shape));
  kinds[1].kind = AttentionKind::sliding;
  kinds[1].window = 1024;
  kinds[2].kind = AttentionKind::mla;
  kinds[2].kv_lora_rank = 512;
  kinds[2].rope_head_dim = 64;
  kinds[3] = {};
  kinds[3].kind = AttentionKind::linear;
  kinds[3].state_elements = 1 << 20;
  kinds[4].cross = true;
  Model m = fixtures::decoder_of(shape, kinds, {0, 1, 2, 3, 4, 0, 1, 3});
  m.name = "hybrid";
  m.origin = "catalogue";
  return m;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

size_t widest(const std::string& text) {
  size_t width = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    width = std::max(width, display_width(text.substr(at, end - at)));
    at = end + 1;
  }
  return width;
}

TEST(ServeReport, TheAnswerComesFirst) {
  const Model m = fixtures::decoder({.kv_heads = 8});
  const ServeAnswer fits = serve(m, h100s(1), {.context = 8192}, Constants::builtin());
  EXPECT_EQ(first_line(render(fits, {})), "fits: " + std::to_string(fits.largest_concurrency) +
                                              " requests of 8,192 tokens at once; longest context " +
                                              with_commas(fits.longest_context));
  const ServeAnswer fails = serve(m, h100s(1), {.context = 8192, .concurrency = 1000}, Constants::builtin());
  EXPECT_EQ(first_line(render(fails, {})).rfind("does not fit: ", 0), 0u);
  const ServeAnswer heavy = serve(model_of_size(70'000'000'000), h100s(1), {}, Constants::builtin());
  EXPECT_EQ(first_line(render(heavy, {})).rfind("does not fit: weights and reserve exceed", 0), 0u);
}

// Every label of every part exists in both languages, whatever is shown.
TEST(ServeReport, RendersEverythingInBothLanguages) {
  for (Lang lang : {Lang::en, Lang::zh}) {
    for (bool textbook : {false, true}) {
      for (const Machine& machine : {h100s(8), fixtures::cards(2, 24 * kGiB)}) {
        Job job{.kv_dtype = "int8", .gpu_memory_utilization = 0.9};
        job.textbook = textbook;
        const ServeAnswer a = serve(hybrid(), machine, job, Constants::builtin());
        const std::string text = render(a, {.lang = lang, .all = true, .explain = true, .steps = true});
        EXPECT_NE(text.find(with_commas(a.largest_concurrency)), std::string::npos);
        EXPECT_LE(widest(render(a, {.lang = lang})), 110u);
        EXPECT_NE(text.find("hybrid"), std::string::npos);
      }
    }
  }
}

// Whatever input moves K most has a name.
TEST(ServeReport, NamesEveryRow) {
  const ServingRules rules = fixtures::rules_of(h100s(1));
  for (ServingRules::Member member : ServingRules::members()) {
    const std::string id = (rules.*member).id;
    for (Lang lang : {Lang::en, Lang::zh})
      EXPECT_FALSE(text(lang, "serving.row." + id.substr(0, id.find('.'))).empty());
  }
}

}  // namespace
}  // namespace vram
