#include <algorithm>
#include <string>

#include "formats/formats.h"

namespace vram {
namespace {

bool ends_with(const std::string& name, std::string_view ending) {
  if (name.size() < ending.size()) return false;
  return std::equal(ending.begin(), ending.end(), name.end() - static_cast<std::ptrdiff_t>(ending.size()),
                    [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b); });
}

}  // namespace

Document parse_by_name(std::string_view text, const std::string& file, const Limits& limits) {
  if (ends_with(file, ".json")) return parse_json(text, file, limits);
  if (ends_with(file, ".yaml") || ends_with(file, ".yml")) return parse_yaml(text, file, limits);
  if (ends_with(file, ".toml")) return parse_toml(text, file, limits);
  const size_t first = text.find_first_not_of("\xef\xbb\xbf \t\r\n");
  if (first != std::string_view::npos && (text[first] == '{' || text[first] == '['))
    return parse_json(text, file, limits);
  return parse_yaml(text, file, limits);
}

}  // namespace vram
