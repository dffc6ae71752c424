#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/checked.h"
#include "base/units.h"

namespace vram {

/// Number formats of tensors. The GGUF and quantized-checkpoint layouts have types of their own.
enum class Dtype : uint8_t {
  f64,
  f32,
  tf32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  f6,
  f4,
  i64,
  i32,
  i16,
  i8,
  u8,
  i4,
  boolean
};

/// Bits of one element (boolean counts a byte, as every framework stores it).
constexpr int64_t bits(Dtype d) {
  switch (d) {
    case Dtype::f64:
    case Dtype::i64:
      return 64;
    case Dtype::f32:
    case Dtype::tf32:
    case Dtype::i32:
      return 32;
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::i16:
      return 16;
    case Dtype::f6:
      return 6;
    case Dtype::f4:
    case Dtype::i4:
      return 4;
    default:
      return 8;
  }
}

/// Bytes of `elements` packed elements, rounded up to a whole byte. Throws OverflowError.
inline Bytes dtype_bytes(Dtype d, int64_t elements) { return ceil_div(checked_mul(elements, bits(d)), 8); }

/// "bf16", "f8_e4m3", ...
std::string_view dtype_name(Dtype d);

/// Reads the spellings of configs, frameworks and people: "bfloat16", "bf16", "torch.float16", "BF16", "fp8", "int4"
/// (upper and lower case are one).
std::optional<Dtype> parse_dtype(std::string_view name);

}  // namespace vram
