#include <gtest/gtest.h>

#include "base/units.h"

namespace vram {
namespace {

TEST(Units, GibAndGbDiffer) {
  EXPECT_EQ(parse_integer("80GiB", Unit::bytes, "memory"), 80 * kGiB);
  EXPECT_EQ(parse_integer("80GB", Unit::bytes, "memory"), 80 * kGB);
}

}  // namespace
}  // namespace vram
