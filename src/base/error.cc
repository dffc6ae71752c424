#include "base/error.h"

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
  if (!f.field.empty()) out += f.field + " ";
  if (!f.value.empty()) out += "'" + printable(f.value) + "' ";
  out += f.problem;
  while (!out.empty() && out.back() == ' ') out.pop_back();
  if (!f.accepted.empty()) out += "; accepted: " + f.accepted;
  if (!f.near_miss.empty()) out += ". Did you mean " + f.near_miss + "?";
  if (!f.hint.empty()) out += " (" + f.hint + ")";
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
    size_t score = std::min(edit_distance(wanted, have), edit_distance(wanted, tail));
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
  for (char c : value) {
    if (out.size() >= limit) {
      while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80) out.pop_back();
      if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xC0) out.pop_back();
      out += "...";
      break;
    }
    const unsigned char u = static_cast<unsigned char>(c);
    out += (u < 0x20 || u == 0x7f) ? '?' : c;
  }
  return out;
}

}  // namespace vram
