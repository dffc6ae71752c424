#pragma once

#include <string>
#include <string_view>

#include "base/document.h"

namespace vram {

/// What a text may hold before it is refused. The defaults suit configs and job files; model indices need more bytes.
struct Limits {
  size_t bytes = size_t{64} << 20;
  int depth = 64;
  size_t values = 2'000'000;
  /// JSON only: read Infinity and -Infinity as null. Python writes them, and published model configs hold them
  /// ("time_step_limit": [0.0, Infinity]). NaN stays refused.
  bool infinity_is_null = false;
};

/// Untrusted text -> Document. InputError with file:line on malformed text, duplicate keys, numbers that are not
/// finite, and anything beyond the limits. Never executes or includes anything.
Document parse_json(std::string_view text, const std::string& file, const Limits& limits = {});
/// YAML 1.2 core values (`no` is a string, `0x10` is 16); merge keys (<<) and further documents are refused; anchors
/// and aliases are refused beyond the value limit, tags other than the core ones refused.
Document parse_yaml(std::string_view text, const std::string& file, const Limits& limits = {});
/// At most 8 MiB whatever the limits say: yaml-cpp and toml++ need many times the text's size; larger data is JSON.
/// Dates and times of TOML become strings.
Document parse_toml(std::string_view text, const std::string& file, const Limits& limits = {});
/// By the file name's ending (.json, .yaml, .yml, .toml), else by the first character ({ or [ is JSON, else YAML).
Document parse_by_name(std::string_view text, const std::string& file, const Limits& limits = {});

/// Document -> text, two spaces of indentation, keys in order, one trailing newline. Reals keep a point;
/// infinities and NaN become null, invalid UTF-8 becomes U+FFFD. Reading back gives same_values() otherwise.
std::string write_json(const Document& document);
std::string write_yaml(const Document& document);

}  // namespace vram
