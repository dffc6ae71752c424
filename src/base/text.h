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

}  // namespace vram
