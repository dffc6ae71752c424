#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>

namespace vram {

/// Thrown when a size of untrusted origin leaves the range of int64.
class OverflowError : public std::overflow_error {
 public:
  using std::overflow_error::overflow_error;
};

inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) throw OverflowError("a size exceeds 2^63 bytes");
  return out;
}

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) throw OverflowError("a size exceeds 2^63 bytes");
  return out;
}

/// a/b rounded up, for a >= 0 and b > 0.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// a*b/c rounded up without losing the product to overflow, for a, b >= 0 and c > 0. Throws OverflowError.
inline int64_t mul_div_up(int64_t a, int64_t b, int64_t c) {
  __extension__ typedef __int128 Wide;
  const Wide quotient = (static_cast<Wide>(a) * b + c - 1) / c;
  if (quotient > std::numeric_limits<int64_t>::max()) throw OverflowError("a size exceeds 2^63 bytes");
  return static_cast<int64_t>(quotient);
}

/// The smallest multiple of b that is at least a, for a >= 0 and b > 0.
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

}  // namespace vram
