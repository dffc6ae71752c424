#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/error.h"
#include "formats/formats.h"

namespace vram {

using Parse = Document (*)(std::string_view, const std::string&, const Limits&);

/// The error line of parsing `text` as the file "f", or "(accepted)".
inline std::string refusal(Parse parse, std::string_view text, const Limits& limits = {}) {
  try {
    parse(text, "f", limits);
  } catch (const InputError& error) {
    return error.what();
  }
  return "(accepted)";
}

/// The document as one line of JSON-like text with each value's line behind it: {"a"@1: 5@1}.
inline std::string shape(const Document& d) {
  std::string out;
  if (d.is_array()) {
    out = "[";
    for (const Document& item : d.array()) out += (out.size() > 1 ? ", " : "") + shape(item);
    out += "]";
  } else if (d.is_object()) {
    out = "{";
    for (const auto& member : d.object())
      out += (out.size() > 1 ? ", " : "") + member.first + ": " + shape(member.second);
    out += "}";
  } else if (d.is_string()) {
    out = "'" + d.string() + "'";
  } else {
    out = d.to_text() + (d.is_real() ? "r" : "");
  }
  return out + "@" + std::to_string(d.line());
}

struct Case {
  std::string_view text;
  std::string_view expected;
};

inline std::string repeated(std::string_view text, size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace vram
