#include "report/gpus.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "machine/fake_environment.h"

namespace vram {
namespace {

std::string rendered(std::vector<std::string> words, std::vector<std::string> compare, Style style = {}) {
  return render_gpus(gpus({.words = std::move(words), .compare = std::move(compare)}, FakeEnvironment()), style);
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

int widest_line(const std::string& text) {
  int widest = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    widest = std::max(widest, static_cast<int>(display_width(text.substr(begin, end - begin))));
    begin = end + 1;
  }
  return widest;
}

TEST(RenderGpus, TheListFitsAScreen) {
  const std::string text = rendered({}, {});
  EXPECT_TRUE(has(text, "80 accelerators"));
  EXPECT_TRUE(has(text, "H100 80GB SXM5"));
  EXPECT_TRUE(has(text, "no driver"));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 45);
  EXPECT_LE(widest_line(text), 100);
  Style all;
  all.all = true;
  EXPECT_TRUE(has(rendered({}, {}, all), "79.10 GiB"));
  EXPECT_LE(widest_line(rendered({}, {}, all)), 100);
}

TEST(RenderGpus, OneDeviceShowsTotalsLevelsAndRidges) {
  const std::string text = rendered({"H100"}, {});
  for (const char* part : {"79.10 GiB", "79.65 GiB", "80.00 GiB", "3.35 TB/s", "450 GB/s", "63.02 GB/s", "989", "295",
                           "700 W", "1.99-5.00", "https://", "fits other boards"}) {
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  }
  EXPECT_TRUE(has(rendered({"V100"}, {}), "no bf16"));
  EXPECT_LE(widest_line(text), 100);
}

TEST(RenderGpus, AComparisonShowsRatios) {
  const std::string text = rendered({}, {"A100", "H100"});
  for (const char* part : {"×3.17", "×1.64", "×1.00", "153", "295"}) EXPECT_TRUE(has(text, part)) << part << text;
}

TEST(RenderGpus, ChineseAndAscii) {
  Style zh;
  zh.lang = Lang::zh;
  EXPECT_TRUE(has(rendered({"H100"}, {}, zh), "屋脊点"));
  Style ascii;
  ascii.unicode = false;
  for (const std::string& text :
       {rendered({}, {}, ascii), rendered({"H100"}, {}, ascii), rendered({}, {"A100", "H100"}, ascii)}) {
    EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
        << text;
  }
}

}  // namespace
}  // namespace vram
