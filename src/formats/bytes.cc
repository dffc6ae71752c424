#include "formats/bytes.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"

namespace vram {
namespace {

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

// The line "size 4976698672" of a pointer; empty where there is none.
std::string size_of_pointer(std::string_view text) {
  const size_t at = text.find("\nsize ");
  if (at == std::string_view::npos) return {};
  std::string digits;
  for (char c : text.substr(at + 6, 18)) {
    if (c < '0' || c > '9') break;
    digits += c;
  }
  return digits.empty() ? digits : " (of " + format_gib(std::stoll(digits)) + ")";
}

}  // namespace

std::string MemoryBytes::read(int64_t offset, size_t length) const {
  if (offset < 0 || offset >= size_) return {};
  const auto most = static_cast<size_t>(std::min<uint64_t>(length, static_cast<uint64_t>(size_ - offset)));
  std::string out;
  if (static_cast<uint64_t>(offset) < bytes_.size()) out = bytes_.substr(static_cast<size_t>(offset), most);
  out.resize(most, '\0');
  return out;
}

bool is_lfs_pointer(std::string_view first_bytes) { return starts_with(first_bytes, "version https://git-lfs"); }

void refuse_impostor(const std::string& file, std::string_view first, std::string_view wanted) {
  const auto refuse = [&](std::string problem) {
    throw InputError({.file = file, .problem = std::move(problem), .accepted = std::string(wanted)});
  };
  if (is_lfs_pointer(first)) {
    refuse("is a Git LFS pointer, not the weights" + size_of_pointer(first) + "; fetch them with 'git lfs pull'");
  }
  if (starts_with(first, "<!DOCTYPE") || starts_with(first, "<!doctype") || starts_with(first, "<html")) {
    refuse("is an HTML page, not the weights");
  }
  if (starts_with(first, "\x1f\x8b")) refuse("is compressed (gzip)");
  if (starts_with(first, "PK\x03\x04") || starts_with(first, "\x80\x02") || starts_with(first, "\x80\x04")) {
    refuse("is a PyTorch checkpoint or another archive, which is not opened");
  }
}

}  // namespace vram
