#include "base/text.h"

#include <utf8proc.h>

namespace vram {
namespace {

// Decodes the character at `at`; returns its length in bytes (1 for an invalid byte) and its width in columns.
struct Glyph {
  size_t bytes;
  size_t columns;
};

Glyph glyph_at(std::string_view text, size_t at) {
  utf8proc_int32_t code = 0;
  const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                  static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  if (n <= 0) return {1, 1};
  return {static_cast<size_t>(n), static_cast<size_t>(utf8proc_charwidth(code))};
}

}  // namespace

size_t display_width(std::string_view text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size();) {
    const Glyph g = glyph_at(text, i);
    width += g.columns;
    i += g.bytes;
  }
  return width;
}

std::string pad_right(std::string_view text, size_t columns) {
  const size_t width = display_width(text);
  std::string out(text);
  if (width < columns) out.append(columns - width, ' ');
  return out;
}

std::string pad_left(std::string_view text, size_t columns) {
  const size_t width = display_width(text);
  std::string out;
  if (width < columns) out.assign(columns - width, ' ');
  out += text;
  return out;
}

std::string fit_width(std::string_view text, size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  if (columns <= 3) return std::string("...").substr(0, columns);
  size_t width = 0;
  size_t i = 0;
  while (i < text.size()) {
    const Glyph g = glyph_at(text, i);
    if (width + g.columns > columns - 3) break;
    width += g.columns;
    i += g.bytes;
  }
  return std::string(text.substr(0, i)) + "...";
}

}  // namespace vram
