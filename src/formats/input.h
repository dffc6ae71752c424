#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "formats/formats.h"

namespace vram {

/// What every text format asks of its input before a parser sees it: at most `limits.bytes`, UTF-8, no NUL bytes, and
/// not one of the files that are commonly found in the place of a real one (a Git LFS pointer, an HTML page, an
/// archive). Returns the text without its byte order mark. InputError otherwise.
std::string_view checked_text(std::string_view text, const std::string& file, const Limits& limits);

/// A place in a text as an editor shows it: both are 1-based, columns count characters.
struct Position {
  int line = 1;
  int column = 1;
};

/// The position of byte `offset` (the end of the text where it is larger).
Position position_at(std::string_view text, size_t offset);

/// InputError "file:line: column N: problem".
[[noreturn]] void refuse_at(const std::string& file, Position at, const std::string& problem,
                            std::string accepted = {});

}  // namespace vram
