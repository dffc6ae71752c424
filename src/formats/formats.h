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
};

/// Untrusted text -> Document. InputError with file:line on malformed text, duplicate keys, numbers that are not
/// finite, and anything beyond the limits. Never executes or includes anything.
Document parse_json(std::string_view text, const std::string& file, const Limits& limits = {});
/// YAML 1.2 core values; anchors and aliases are refused beyond the value limit, tags other than the core ones refused.
Document parse_yaml(std::string_view text, const std::string& file, const Limits& limits = {});
Document parse_toml(std::string_view text, const std::string& file, const Limits& limits = {});
/// By the file name's ending (.json, .yaml, .yml, .toml), else by the first character ({ or [ is JSON, else YAML).
Document parse_by_name(std::string_view text, const std::string& file, const Limits& limits = {});

/// Document -> text, two spaces of indentation, keys in order, one trailing newline. Reals keep a point or exponent.
std::string write_json(const Document& document);
std::string write_yaml(const Document& document);

}  // namespace vram
