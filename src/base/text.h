#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vram {

/// Columns that UTF-8 `text` takes in a terminal (CJK characters take two). Invalid bytes count one each.
size_t display_width(std::string_view text);

/// `text` followed (pad_right) or preceded (pad_left) by spaces up to `columns` of display width; never cut.
std::string pad_right(std::string_view text, size_t columns);
std::string pad_left(std::string_view text, size_t columns);

/// `text` cut to at most `columns` of display width, with a trailing "..." where cut.
std::string fit_width(std::string_view text, size_t columns);

/// The offset of the first byte that begins no valid UTF-8 character (surrogates and overlong forms are invalid);
/// npos where all is valid.
size_t find_invalid_utf8(std::string_view text);

/// The double nearest to a decimal number whatever the locale; infinite where it is out of range.
/// Precondition: `text` is [-+]?digits[.digits][e[-+]digits] with at least one digit before the exponent.
double decimal_to_double(std::string_view text);

}  // namespace vram
