#include "base/error.h"

#include <utf8proc.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace vram {
namespace {

std::string one_line(const Fault& f) {
  std::string out;
  if (!f.file.empty()) {
    out += printable(f.file, 200);
    if (f.line > 0) out += ":" + std::to_string(f.line);
    out += ": ";
  }
  // Every part may hold text of a file: nothing reaches the terminal unfiltered, nothing breaks the line.
  if (!f.field.empty()) out += printable(f.field, 200) + " ";
  if (!f.value.empty()) out += "'" + printable(f.value) + "' ";
  out += printable(f.problem, 1000);
  while (!out.empty() && out.back() == ' ') out.pop_back();
  if (!f.accepted.empty()) out += "; accepted: " + printable(f.accepted, 2000);
  if (!f.near_miss.empty()) out += ". Did you mean " + printable(f.near_miss, 200) + "?";
  if (!f.hint.empty()) out += " (" + printable(f.hint, 200) + ")";
  return out;
}

// Lower case without separators, so that "llama_3.1-70B" and "Llama-3.1-70b" meet.
std::string folded(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c != '-' && c != '_' && c != ' ') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// Controls move the cursor or start escape sequences, format characters reorder what is read (bidirectional overrides),
// line and paragraph separators break the line.
bool is_shown(utf8proc_int32_t code) {
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
      return false;
    default:
      return true;
  }
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// The edit distance, or `limit` where the lengths alone make it that large: spares the work for most of a long list.
size_t distance_below(size_t limit, std::string_view a, std::string_view b) {
  const size_t gap = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  return gap >= limit ? limit : edit_distance(a, b);
}

}  // namespace

InputError::InputError(Fault fault) : std::runtime_error(one_line(fault)), fault_(std::move(fault)) {}

std::string near_miss(std::string_view word, const std::vector<std::string_view>& known) {
  const std::string wanted = folded(word.substr(0, 80));
  if (wanted.size() < 2) return {};
  std::string_view best;
  size_t best_score = wanted.size() * 2 / 5 + 1;  // at most about 40 % of the letters may differ
  for (std::string_view candidate : known) {
    const std::string have = folded(candidate);
    // An organisation prefix ("meta-llama/") is often left out; compare the last path part as well.
    const std::string tail = folded(candidate.substr(candidate.find_last_of('/') + 1));
    size_t score = std::min(distance_below(best_score + 1, wanted, have), distance_below(best_score + 1, wanted, tail));
    // A true prefix is nearer than its distance says: "Llama-3.1-70" for "Llama-3.1-70B-Instruct".
    if (tail.compare(0, wanted.size(), wanted) == 0) score = std::min<size_t>(score, 1);
    if (score < best_score || (score == best_score && !best.empty() && candidate.size() < best.size())) {
      best_score = score;
      best = candidate;
    }
  }
  return std::string(best);
}

std::string printable(std::string_view value, size_t limit) {
  std::string out;
  for (size_t i = 0; i < value.size();) {
    utf8proc_int32_t code = 0;
    const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(value.data()) + i,
                                    static_cast<utf8proc_ssize_t>(std::min<size_t>(value.size() - i, 4)), &code);
    const size_t length = n > 0 ? static_cast<size_t>(n) : 1;
    const bool shown = n > 0 && is_shown(code);
    if (out.size() + (shown ? length : 1) > limit) return out + "...";
    if (shown) {
      out += value.substr(i, length);
    } else {
      out += '?';
    }
    i += length;
  }
  return out;
}

}  // namespace vram
