#include "formats/input.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"

namespace vram {
namespace {

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

[[noreturn]] void refuse_file(const std::string& file, std::string problem, std::string accepted = {}) {
  throw InputError({.file = file, .problem = std::move(problem), .accepted = std::move(accepted)});
}

// Names what a binary file is by its first bytes, where people mix them up with the file we want.
std::string_view known_binary(std::string_view text) {
  if (starts_with(text, "\x1f\x8b")) return "is compressed (gzip)";
  if (starts_with(text, "PK\x03\x04")) return "is a ZIP archive (or a PyTorch checkpoint)";
  // Behind the magic stands a small little-endian version.
  if (starts_with(text, "GGUF") && text.size() > 7 && text[7] == '\0') return "is a GGUF file";
  if (starts_with(text, "\xff\xfe") || starts_with(text, "\xfe\xff")) return "is UTF-16 text";
  // safetensors: eight bytes of header length, then a JSON object.
  if (text.size() > 9 && text[8] == '{' && text[7] == '\0') return "is a safetensors file";
  return {};
}

}  // namespace

std::string_view checked_text(std::string_view text, const std::string& file, const Limits& limits) {
  if (text.size() > limits.bytes) {
    refuse_file(file, "holds " + with_commas(static_cast<int64_t>(text.size())) + " bytes",
                "at most " + with_commas(static_cast<int64_t>(std::min(limits.bytes, size_t{1} << 62))) + " bytes");
  }
  if (starts_with(text, "version https://git-lfs.github.com/spec/")) {
    refuse_file(file, "is a Git LFS pointer, not the file itself; fetch the file with 'git lfs pull'");
  }
  if (starts_with(text, "<!DOCTYPE") || starts_with(text, "<!doctype") || starts_with(text, "<html")) {
    refuse_file(file, "is an HTML page, not the file itself");
  }
  if (const std::string_view kind = known_binary(text); !kind.empty())
    refuse_file(file, std::string(kind), "UTF-8 text");
  if (starts_with(text, "\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t nul = text.find('\0');
  const size_t bad = find_invalid_utf8(text);
  if (const size_t at = std::min(nul, bad); at != std::string_view::npos) {
    refuse_at(file, position_at(text, at), nul < bad ? "NUL byte; is this a binary file?" : "bytes that are not UTF-8",
              "UTF-8 text");
  }
  return text;
}

Position position_at(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const size_t newline = before.rfind('\n');
  const std::string_view row = newline == std::string_view::npos ? before : before.substr(newline + 1);
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  return {
      .line = static_cast<int>(1 + std::count(before.begin(), before.end(), '\n')),
      .column = static_cast<int>(1 + row.size()) - static_cast<int>(std::count_if(row.begin(), row.end(), continues))};
}

void refuse_at(const std::string& file, Position at, const std::string& problem, std::string accepted) {
  throw InputError({.file = file,
                    .line = at.line,
                    .problem = "column " + std::to_string(at.column) + ": " + problem,
                    .accepted = std::move(accepted)});
}

}  // namespace vram
