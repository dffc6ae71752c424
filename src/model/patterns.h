#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace vram::arch {

/// Whether `text` matches the shell pattern as a whole: * any run, ? any one byte.
bool glob_match(std::string_view pattern, std::string_view text);

/// Whether a prefix of `text` (`whole`: all of it) matches the regular expression. The subset that quantization configs
/// use: literals, ., classes, \d \w \s and escapes, groups, |, * + ?, ^ $. Anything else never matches. Work is
/// bounded: a pattern that backtracks too much does not match.
bool regex_match(std::string_view pattern, std::string_view text, bool whole = false);

/// A list of modules that a quantization leaves alone, in the manner of the tool that wrote it.
class ModulePatterns {
 public:
  enum class Manner : uint8_t {
    transformers,       ///< a prefix or suffix of the module name at a dot; patterns with * are expressions
    shell,              ///< ModelOpt: shell patterns; plain names cover what is below them
    compressed_tensors  ///< whole names; "re:" expressions
  };
  ModulePatterns(Manner manner, const std::vector<std::string>& patterns);
  bool matches(std::string_view module) const;
  bool empty() const { return literals_.empty() && general_.empty() && by_layer_.empty(); }

 private:
  bool matches_one(const std::string& pattern, std::string_view module) const;
  Manner manner_;
  std::unordered_set<std::string> literals_;
  std::vector<std::string> general_;
  // Patterns that name one layer ("...layers.7.mlp*") are looked at for that layer only: lists may have thousands.
  std::unordered_map<std::string, std::vector<std::string>> by_layer_;
};

}  // namespace vram::arch
