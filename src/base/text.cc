#include "base/text.h"

#include <utf8proc.h>

#include <cstdlib>

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

size_t find_invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    utf8proc_int32_t code = 0;
    const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + i,
                                    static_cast<utf8proc_ssize_t>(text.size() - i), &code);
    if (n <= 0) return i;
    i += static_cast<size_t>(n);
  }
  return std::string_view::npos;
}

double decimal_to_double(std::string_view text) {
  // strtod reads the locale's decimal point, so it gets none: "1.5e3" is handed over as "15e2".
  const size_t e = text.find_first_of("eE");
  const std::string_view mantissa = text.substr(0, e);
  const size_t point = mantissa.find('.');
  std::string plain(mantissa.substr(0, point));
  long long exponent = 0;
  if (point != std::string_view::npos) {
    plain += mantissa.substr(point + 1);
    exponent -= static_cast<long long>(mantissa.size() - point - 1);
  }
  // strtoll saturates, and 10^(2^62) is as infinite as what was meant.
  if (e != std::string_view::npos) {
    const long long written = std::strtoll(std::string(text.substr(e + 1)).c_str(), nullptr, 10);
    exponent += written > (1LL << 62) ? (1LL << 62) : written < -(1LL << 62) ? -(1LL << 62) : written;
  }
  plain += 'e';
  plain += std::to_string(exponent);
  return std::strtod(plain.c_str(), nullptr);
}

}  // namespace vram
