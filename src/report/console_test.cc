#include "report/console.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <sstream>

#include "base/text.h"

namespace vram {
namespace {

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

TEST(Bar, FillsByEighths) {
  const Style style;
  EXPECT_EQ(bar(style, 0, 80, 16), "░░░░░░░░░░░░░░░ ");
  EXPECT_EQ(bar(style, 40, 80, 16), "███████▌░░░░░░░ ");
  EXPECT_EQ(bar(style, 80, 80, 16), "███████████████ ");
  EXPECT_EQ(bar(style, 80.001, 80, 16), "███████████████▶");
  EXPECT_EQ(bar(style, 1e-9, 80, 4, Track::none), "▏   ");
  Style ascii;
  ascii.unicode = false;
  EXPECT_EQ(bar(ascii, 40, 80, 9), "####.... ");
  EXPECT_EQ(bar(ascii, 81, 80, 9), "########>");
}

TEST(Bar, RefusesNonsenseQuietly) {
  const Style style;
  EXPECT_EQ(bar(style, std::numeric_limits<double>::quiet_NaN(), 80, 4), "░░░ ");
  EXPECT_EQ(bar(style, -3, 80, 4), "░░░ ");
  EXPECT_EQ(bar(style, 3, 0, 4), "    ");
  EXPECT_EQ(bar(style, std::numeric_limits<double>::infinity(), 80, 4), "███▶");
}

RC_GTEST_PROP(Bar, HasExactlyTheColumnsAskedFor, (double value, double limit)) {
  const int columns = *rc::gen::inRange(2, 60);
  Style style;
  style.unicode = *rc::gen::arbitrary<bool>();
  RC_ASSERT(display_width(bar(style, value, limit, columns)) == static_cast<size_t>(columns));
}

TEST(Sparkline, SpansLowToHigh) {
  const Style style;
  const std::vector<double> v = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(sparkline(style, v, 0, 8, 9), "▁▂▃▄▅▆▇██");
  EXPECT_EQ(sparkline(style, v, 0, 8, 3), "▃▆█");
  EXPECT_EQ(sparkline(style, {}, 0, 8, 3), "");
  Style ascii;
  ascii.unicode = false;
  EXPECT_EQ(sparkline(ascii, v, 0, 8, 9), "_.:-=+*##");
}

TEST(Wrap, BreaksAtSpacesAndKeepsLongWordsWhole) {
  EXPECT_EQ(wrap("one two three", 8), "one two\nthree\n");
  EXPECT_EQ(wrap("a /very/long/path/indeed b", 8, 2, 4), "  a\n    /very/long/path/indeed\n    b\n");
  EXPECT_EQ(wrap("", 8), "\n");
}

TEST(Wrap, BreaksChineseAnywhereButNotBeforeItsPunctuation) {
  EXPECT_EQ(wrap("显存不够用了", 6), "显存不\n够用了\n");
  EXPECT_EQ(wrap("显存不，够用了", 6), "显存\n不，够\n用了\n");
  EXPECT_EQ(wrap("显存（不够）用", 6), "显存\n（不\n够）用\n");
  EXPECT_EQ(wrap("需要 16 张卡", 8), "需要 16\n张卡\n");
}

RC_GTEST_PROP(Wrap, KeepsEveryCharacter, ()) {
  static const std::vector<std::string> pieces = {"memory", "显", "存",  "，",   "（", "）",
                                                  " ",      "8",  "GiB", "--tp", "。", "x"};
  std::string text;
  for (size_t i : *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, pieces.size())))
    text += pieces[i];
  const int width = *rc::gen::inRange(8, 40);
  const std::string out = wrap(text, width);
  std::string a;
  std::string b;
  for (char c : text) {
    if (c != ' ') a += c;
  }
  for (char c : out) {
    if (c != ' ' && c != '\n') b += c;
  }
  RC_ASSERT(a == b);
  for (const std::string& line : lines(out)) {
    // Only a single unbreakable piece may pass the edge.
    if (display_width(line) > static_cast<size_t>(width)) RC_ASSERT(line.find(' ') == std::string::npos);
  }
}

TEST(Table, AlignsByDisplayWidth) {
  Table t({{"任务"}, {"每卡", Align::right}, {"how"}});
  t.row({"推理 bf16", "17.62 GiB", "tp 8"});
  t.row({"QLoRA", "8.00 GiB", Cell("zero 3", Tone::good)});
  EXPECT_EQ(t.render(Style{}),
            "  任务            每卡  how\n"
            "  推理 bf16  17.62 GiB  tp 8\n"
            "  QLoRA       8.00 GiB  zero 3\n");
}

TEST(Table, WrapsTheLastProseColumn) {
  Style style;
  style.width = 40;
  Table t({{""}, {"", Align::right}, {""}});
  t.row({"weights", "1", "one two three four five six seven eight"});
  t.note("2·L = 64");
  t.rule();
  for (const std::string& line : lines(t.render(style))) EXPECT_LE(display_width(line), 40u) << line;
  EXPECT_EQ(lines(t.render(style)).size(), 4u);
  EXPECT_THROW(t.row({"a", "b", "c", "d"}), std::logic_error);
}

TEST(Table, ColoursNothingUnlessAsked) {
  Table t({{"a"}, {"b"}});
  t.row({Cell("x", Tone::bad), Cell("y", Tone::good)});
  EXPECT_EQ(t.render(Style{}).find('\033'), std::string::npos);
  Style style;
  style.color = true;
  EXPECT_NE(t.render(style).find("\033[31mx\033[0m"), std::string::npos);
}

TEST(Tree, ShowsBarsAmountsAndFormulas) {
  const std::vector<TreeLine> account = {
      {.label = "parameters", .value = 4, .amount = "4.00 GiB", .note = "fp32 shards 1/8"},
      {.label = "layers", .value = 16, .amount = "16.00 GiB", .depth = 1, .explanation = {"L·s = 2·8 = 16"}},
      {.label = "sum", .value = -1, .amount = "20.00 GiB", .rule_above = true}};
  Style style;
  EXPECT_EQ(tree(style, account, 16, 9),
            "  parameters  ██         4.00 GiB   fp32 shards 1/8\n"
            "    layers    ████████  16.00 GiB\n"
            "              ───────────────────\n"
            "  sum                   20.00 GiB\n");
  style.explain = true;
  EXPECT_NE(tree(style, account, 16, 9).find("\n      L·s = 2·8 = 16\n"), std::string::npos);
}

TEST(Lines, BreakBetweenItems) {
  Style style;
  style.width = 40;
  EXPECT_EQ(next_line(style, {"vram train X --explain", "vram plan X", "vram serve X"}),
            "  Next: vram train X --explain\n    vram plan X · vram serve X\n");
  style.lang = Lang::zh;
  EXPECT_EQ(next_line(style, {"vram train X"}), "  下一步：vram train X\n");
  EXPECT_EQ(moves_most_line(style, {}), "");
}

TEST(Lines, FactsBeginAtTheMargin) {
  Style style;
  style.width = 20;
  EXPECT_EQ(fact_line(style, {"7 B parameters", "32 layers", "bf16"}), "7 B parameters\n    32 layers · bf16\n");
  EXPECT_EQ(fact_line(style, {}), "");
}

TEST(Ranges, PrintTheUnitOnce) {
  EXPECT_EQ(gib_with_range(10 * kGiB, 9 * kGiB, 12 * kGiB, 1), "10.0 GiB (9.0-12.0)");
  EXPECT_EQ(gib_with_range(10 * kGiB, 10 * kGiB, 10 * kGiB), "10.00 GiB");
  EXPECT_EQ(gib_with_range(10 * kGiB, 10 * kGiB - 1, 10 * kGiB + 1), "10.00 GiB");
}

TEST(Ascii, ReplacesWhatReportsDraw) { EXPECT_EQ(to_ascii("2·L × 3 ███▶ 显存"), "2*L x 3 ###> 显存"); }

}  // namespace
}  // namespace vram
