#include "base/dtype.h"

#include <gtest/gtest.h>

#include <limits>

namespace vram {
namespace {

constexpr Dtype kAll[] = {Dtype::f64,     Dtype::f32,     Dtype::tf32, Dtype::f16, Dtype::bf16,   Dtype::f8_e4m3,
                          Dtype::f8_e5m2, Dtype::f8_e8m0, Dtype::f6,   Dtype::f4,  Dtype::i64,    Dtype::i32,
                          Dtype::i16,     Dtype::i8,      Dtype::u8,   Dtype::i4,  Dtype::boolean};

TEST(Dtype, EveryNameReadsBack) {
  for (Dtype d : kAll) {
    ASSERT_TRUE(parse_dtype(dtype_name(d))) << dtype_name(d);
    EXPECT_EQ(*parse_dtype(dtype_name(d)), d) << dtype_name(d);
  }
}

TEST(Dtype, ReadsTheSpellingsOfConfigsAndHeaders) {
  EXPECT_EQ(parse_dtype("bfloat16"), Dtype::bf16);
  EXPECT_EQ(parse_dtype("torch.float16"), Dtype::f16);
  EXPECT_EQ(parse_dtype("torch.float8_e4m3fn"), Dtype::f8_e4m3);
  EXPECT_EQ(parse_dtype("half"), Dtype::f16);
  EXPECT_EQ(parse_dtype("BF16"), Dtype::bf16);
  EXPECT_EQ(parse_dtype("F8_E4M3"), Dtype::f8_e4m3);
  EXPECT_EQ(parse_dtype("F8_E5M2"), Dtype::f8_e5m2);
  EXPECT_EQ(parse_dtype("I64"), Dtype::i64);
  EXPECT_EQ(parse_dtype("BOOL"), Dtype::boolean);
  EXPECT_EQ(parse_dtype("fp8"), Dtype::f8_e4m3);
  EXPECT_EQ(parse_dtype("INT4"), Dtype::i4);
  for (std::string_view bad : {"", "auto", "float17", "torch.", "bf16 ", "fp8fp8fp8fp8fp8fp8fp8fp8fp8fp8fp8"}) {
    EXPECT_FALSE(parse_dtype(bad)) << bad;
  }
}

TEST(Dtype, BytesRoundUpToWholeBytes) {
  EXPECT_EQ(dtype_bytes(Dtype::bf16, 7'000'000'000), 14'000'000'000);
  EXPECT_EQ(dtype_bytes(Dtype::i4, 3), 2);
  EXPECT_EQ(dtype_bytes(Dtype::f6, 4), 3);
  EXPECT_EQ(dtype_bytes(Dtype::f6, 5), 4);
  EXPECT_EQ(dtype_bytes(Dtype::tf32, 2), 8);
  EXPECT_EQ(dtype_bytes(Dtype::boolean, 3), 3);
  EXPECT_EQ(dtype_bytes(Dtype::f8_e8m0, 3), 3);
  EXPECT_EQ(dtype_bytes(Dtype::f64, 0), 0);
  EXPECT_THROW(dtype_bytes(Dtype::f32, std::numeric_limits<int64_t>::max() / 16), OverflowError);
}

}  // namespace
}  // namespace vram
