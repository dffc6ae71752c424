#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vram {

/// A strict JSON reader without a tree, for texts of many megabytes and few kinds of value (headers and indices of
/// weight files): the caller asks for what must come next. Every refusal is an InputError with the line, or for text on
/// one line (headers) the byte.
class JsonScan {
 public:
  /// Both must outlive this. Refuses text that is not UTF-8.
  JsonScan(std::string_view text, const std::string& file, bool binary_file);

  /// Whether `c` comes next; takes it then.
  bool accept(char c);
  void expect(char c);
  /// A string without escapes is a view into the text, others are put into `scratch`.
  std::string_view string(std::string& scratch);
  /// A whole number of at least 0. `what` names it in errors.
  int64_t whole_number(std::string_view what);
  /// Any value, checked and passed over.
  void skip_value(int depth = 0);
  /// The same, as the text of the value.
  std::string_view value_text();
  /// Only white space may follow.
  void end();
  [[noreturn]] void refuse(std::string problem, std::string accepted = {}) const;

 private:
  void space();
  void skip_number();
  void unescape(std::string& out);

  std::string_view text_;
  const std::string& file_;
  bool binary_file_;
  size_t at_ = 0;
};

}  // namespace vram
