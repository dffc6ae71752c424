#include "formats/core_scalar.h"

#include <limits>

#include "base/text.h"

namespace vram {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The value of a digit in bases up to 16, or 16.
int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

size_t skip_digits(std::string_view text, size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

// Digits of one base to an integer, or to a real where they do not fit. Null where some character is no such digit.
Document whole(std::string_view digits, int base, bool negative) {
  if (digits.empty()) return {};
  int64_t value = 0;
  double real = 0;
  bool fits = true;
  for (char c : digits) {
    const int digit = digit_value(c);
    if (digit >= base) return {};
    // Built downwards for negative numbers, since -2^63 has no positive counterpart.
    fits = fits && !__builtin_mul_overflow(value, int64_t{base}, &value) &&
           !__builtin_add_overflow(value, int64_t{negative ? -digit : digit}, &value);
    real = real * base + digit;
  }
  if (fits) return Document(value);
  return Document(negative ? -real : real);
}

}  // namespace

Document core_scalar(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return {};
  if (text == "true" || text == "True" || text == "TRUE") return Document(true);
  if (text == "false" || text == "False" || text == "FALSE") return Document(false);

  const bool negative = text[0] == '-';
  const size_t start = negative || text[0] == '+' ? 1 : 0;
  const std::string_view rest = text.substr(start);
  if (rest == ".inf" || rest == ".Inf" || rest == ".INF") {
    return Document(negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
  }
  if (text == ".nan" || text == ".NaN" || text == ".NAN") return Document(std::numeric_limits<double>::quiet_NaN());
  if (start == 0 && text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'o')) {
    Document value = whole(text.substr(2), text[1] == 'x' ? 16 : 8, false);
    return value.is_null() ? Document(std::string(text)) : value;
  }

  // [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
  size_t at = skip_digits(text, start);
  const size_t before_point = at - start;
  size_t after_point = 0;
  bool point = false;
  if (at < text.size() && text[at] == '.') {
    point = true;
    const size_t fraction = at + 1;
    at = skip_digits(text, fraction);
    after_point = at - fraction;
  }
  const bool mantissa = before_point > 0 || after_point > 0;
  bool exponent = false;
  if (mantissa && at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    size_t digits = at + 1;
    if (digits < text.size() && (text[digits] == '-' || text[digits] == '+')) ++digits;
    const size_t end = skip_digits(text, digits);
    exponent = end > digits;
    if (exponent) at = end;
  }
  if (!mantissa || at != text.size()) return Document(std::string(text));
  if (!point && !exponent) {
    Document value = whole(text.substr(start), 10, negative);
    // Too long for an integer: read once more as a decimal, which rounds only once.
    return value.is_integer() ? value : Document(decimal_to_double(text));
  }
  return Document(decimal_to_double(text));
}

}  // namespace vram
