#include "base/text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdlib>

namespace vram {
namespace {

TEST(Text, DisplayWidth) {
  EXPECT_EQ(display_width(""), 0u);
  EXPECT_EQ(display_width("GiB"), 3u);
  EXPECT_EQ(display_width("显存账本"), 8u);
  EXPECT_EQ(display_width("共 8 张卡"), 9u);
  EXPECT_EQ(display_width("，。"), 4u);
  EXPECT_EQ(display_width("████▌"), 5u);
  EXPECT_EQ(display_width("n\xcc\x83"), 1u);  // a combining tilde takes no column
  EXPECT_EQ(display_width("\xff\xe6\x98"), 3u);
}

TEST(Text, PadsByWidth) {
  EXPECT_EQ(pad_right("权重", 6), "权重  ");
  EXPECT_EQ(pad_left("权重", 6), "  权重");
  EXPECT_EQ(pad_right("权重", 3), "权重");
  EXPECT_EQ(pad_left("abc", 3), "abc");
}

TEST(Text, CutsByWidth) {
  EXPECT_EQ(fit_width("abcdef", 6), "abcdef");
  EXPECT_EQ(fit_width("abcdefg", 6), "abc...");
  EXPECT_EQ(fit_width("优化器状态", 8), "优化...");  // a third character would take the eighth column
  EXPECT_EQ(fit_width("abcdef", 2), "..");
  EXPECT_EQ(fit_width("abcdef", 0), "");
}

RC_GTEST_PROP(Text, CutTextFits, (const std::string& text)) {
  const size_t columns = *rc::gen::inRange<size_t>(0, 40);
  RC_ASSERT(display_width(fit_width(text, columns)) <= columns);
  RC_ASSERT(display_width(pad_right(text, columns)) >= columns);
}

TEST(Text, FindsInvalidUtf8) {
  constexpr size_t kNone = std::string_view::npos;
  EXPECT_EQ(find_invalid_utf8(""), kNone);
  EXPECT_EQ(find_invalid_utf8("abc 显存 \xf0\x9f\x98\x80"), kNone);
  EXPECT_EQ(find_invalid_utf8("a\xff"), 1u);
  EXPECT_EQ(find_invalid_utf8("显\xe5\xad"), 3u);
  EXPECT_EQ(find_invalid_utf8("\xc0\x80"), 0u);
  EXPECT_EQ(find_invalid_utf8("\xed\xa0\x80"), 0u);
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0u);
}

TEST(Text, DecimalsAreTheNearestDouble) {
  EXPECT_EQ(decimal_to_double("0"), 0.0);
  EXPECT_EQ(decimal_to_double("1.5e3"), 1500.0);
  EXPECT_EQ(decimal_to_double("-0.1"), -0.1);
  EXPECT_EQ(decimal_to_double(".5"), 0.5);
  EXPECT_EQ(decimal_to_double("+5."), 5.0);
  EXPECT_EQ(decimal_to_double("123456789012345678901234567890"), 123456789012345678901234567890.0);
  EXPECT_EQ(decimal_to_double("1.7976931348623157e308"), 1.7976931348623157e308);
  EXPECT_TRUE(std::isinf(decimal_to_double("1e309")));
  EXPECT_TRUE(std::isinf(decimal_to_double("1e99999999999999999999999")));
  EXPECT_EQ(decimal_to_double("1e-99999999999999999999999"), 0.0);
  EXPECT_EQ(decimal_to_double("0.00001e5"), 1.0);
}

RC_GTEST_PROP(Text, DecimalsAgreeWithTheLibrary, ()) {
  const double value = *rc::gen::arbitrary<double>();
  char text[64];
  std::snprintf(text, sizeof text, "%.17g", value);
  RC_PRE(std::isfinite(value));
  RC_ASSERT(decimal_to_double(text) == value);
}

}  // namespace
}  // namespace vram
