#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace vram::fuzz {

/// Stops the fuzzer where a property does not hold: assert() that no build type removes.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "property does not hold: %s\n", what);
  std::abort();
}

/// Every refusal is one line of valid, printable UTF-8 of bounded length, whatever the input holds.
inline void require_clean(const InputError& error) {
  const std::string_view line = error.what();
  require(!line.empty() && line.size() < 4000, "an error line has a bounded length");
  require(find_invalid_utf8(line) == std::string_view::npos, "an error line is UTF-8");
  for (char c : line) {
    require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "an error line has no control characters");
  }
  require(error.fault().line >= 0, "a line number is not negative");
}

}  // namespace vram::fuzz
