#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace vram {

/// Exit statuses of every verb.
enum class Exit : int { yes = 0, no = 1, bad_input = 2, unavailable = 3 };

/// What was wrong with something a person or a file gave us. Every part may be empty.
struct Fault {
  std::string file;       ///< file name, or empty for a command-line option
  int line = 0;           ///< 1-based; 0 where unknown
  std::string field;      ///< field or option, as the person wrote it ("--tensor-parallel")
  std::string value;      ///< offending value, as given
  std::string problem;    ///< what is wrong, a clause without a full stop
  std::string accepted;   ///< what would be accepted
  std::string near_miss;  ///< the closest known name
  std::string hint;       ///< where to look further, printed last in parentheses
};

/// Bad input: exit status 2. what() is one line: "file:line: field 'value' problem; accepted: ...; did you mean ...?"
class InputError : public std::runtime_error {
 public:
  explicit InputError(Fault fault);
  const Fault& fault() const { return fault_; }

 private:
  Fault fault_;
};

/// A file, device or network that could not be had: exit status 3.
class UnavailableError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The closest of `known` to `word` by edit distance (case and separators ignored), or empty if none is close.
std::string near_miss(std::string_view word, const std::vector<std::string_view>& known);

/// `value` shortened to `limit` bytes (then "..."), with '?' for invalid UTF-8 and for characters that would move the
/// cursor, break the line or reorder the text: safe to print inside one line.
std::string printable(std::string_view value, size_t limit = 60);

}  // namespace vram
