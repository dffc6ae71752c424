#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "catalog/constant.h"

namespace vram {

/// The number types over which every formula of the ledger is written once. A formula in terms of `Fast` gives its
/// value; the same formula in terms of `Traced` also prints itself with the numbers put in.
template <class N>
concept Number = requires(N a, N b, int64_t v, std::string_view name, const Constant& constant) {
  {N(v)};
  { N::symbol(name, v) } -> std::same_as<N>;
  { N::constant(constant) } -> std::same_as<N>;
  { a + b } -> std::same_as<N>;
  { a - b } -> std::same_as<N>;
  { a* b } -> std::same_as<N>;
  { ceil_div(a, b) } -> std::same_as<N>;
  { floor_div(a, b) } -> std::same_as<N>;
  { max(a, b) } -> std::same_as<N>;
  { a.value() } -> std::same_as<int64_t>;
};

/// A checked int64. Overflow is sticky: it survives every operation and value() throws OverflowError.
class Fast {
 public:
  constexpr Fast() = default;
  constexpr Fast(int64_t value) : value_(value) {}
  static constexpr Fast symbol(std::string_view, int64_t value) { return Fast(value); }
  static Fast constant(const Constant& c) { return Fast(c.value); }

  int64_t value() const {
    if (overflow_) throw OverflowError("a size exceeds 2^63 bytes");
    return value_;
  }
  constexpr bool overflowed() const { return overflow_; }
  int64_t low() const { return value(); }
  int64_t high() const { return value(); }
  std::string formula() const { return {}; }

  friend constexpr Fast operator+(Fast a, Fast b) {
    Fast out;
    out.overflow_ = __builtin_add_overflow(a.value_, b.value_, &out.value_) | a.overflow_ | b.overflow_;
    return out;
  }
  friend constexpr Fast operator-(Fast a, Fast b) {
    Fast out;
    out.overflow_ = __builtin_sub_overflow(a.value_, b.value_, &out.value_) | a.overflow_ | b.overflow_;
    return out;
  }
  friend constexpr Fast operator*(Fast a, Fast b) {
    Fast out;
    out.overflow_ = __builtin_mul_overflow(a.value_, b.value_, &out.value_) | a.overflow_ | b.overflow_;
    return out;
  }
  /// a/b rounded up; a >= 0, b > 0.
  friend constexpr Fast ceil_div(Fast a, Fast b) {
    Fast out(vram::ceil_div(a.value_, b.value_ == 0 ? 1 : b.value_));
    out.overflow_ = a.overflow_ | b.overflow_ | (b.value_ == 0);
    return out;
  }
  /// a/b rounded down; a >= 0, b > 0.
  friend constexpr Fast floor_div(Fast a, Fast b) {
    Fast out(a.value_ / (b.value_ == 0 ? 1 : b.value_));
    out.overflow_ = a.overflow_ | b.overflow_ | (b.value_ == 0);
    return out;
  }
  friend constexpr Fast max(Fast a, Fast b) {
    Fast out(a.value_ > b.value_ ? a.value_ : b.value_);
    out.overflow_ = a.overflow_ | b.overflow_;
    return out;
  }

 private:
  int64_t value_ = 0;
  bool overflow_ = false;
};

/// A number that remembers the expression it came from, and the range that assumed or measured constants leave open.
class Traced {
 public:
  Traced() : Traced(int64_t{0}) {}
  Traced(int64_t literal);
  static Traced symbol(std::string_view name, int64_t value);
  static Traced constant(const Constant& c);

  int64_t value() const;  ///< throws OverflowError naming the expression
  int64_t low() const;
  int64_t high() const;
  /// "2·L·n_kv·d·s·b·bytes"; a plain number prints as itself.
  std::string expression() const;
  /// "2·L·n_kv·d = 2·32·8·128 = 65,536"; parts that repeat the previous one are left out.
  std::string formula() const;
  /// Ids of the constants inside, in order of first use.
  std::string constants() const;

  friend Traced operator+(const Traced& a, const Traced& b);
  friend Traced operator-(const Traced& a, const Traced& b);
  friend Traced operator*(const Traced& a, const Traced& b);
  friend Traced ceil_div(const Traced& a, const Traced& b);
  friend Traced floor_div(const Traced& a, const Traced& b);
  friend Traced max(const Traced& a, const Traced& b);

  struct Node;

 private:
  explicit Traced(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

static_assert(Number<Fast>);
static_assert(Number<Traced>);

}  // namespace vram
