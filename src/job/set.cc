#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/error.h"
#include "job/set.h"

namespace vram {
namespace {

constexpr size_t kLongestWord = 4096;

std::string folded(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c != '-' && c != '_' && c != ' ') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

[[noreturn]] void refuse(const Field& field, const Place& place, std::string_view value, std::string problem) {
  std::string near;
  if (!field.choices.empty()) near = near_miss(value, field.choices);
  throw InputError({.file = place.file,
                    .line = place.line,
                    .field = place.shown,
                    .value = std::string(value),
                    .problem = std::move(problem),
                    .accepted = field.accepted(),
                    .near_miss = std::move(near)});
}

std::string bound(double v) {
  if (v == std::floor(v) && std::abs(v) < 1e15) return with_commas(static_cast<int64_t>(v));
  return fmt::format("{:g}", v);
}

// One of the choices, whatever its case and separators, or by a synonym; free words pass.
std::string word(const Field& field, const Place& place, std::string_view given) {
  const std::string_view text = trimmed(given);
  if (text.empty()) refuse(field, place, given, "is empty");
  if (text.size() > kLongestWord) refuse(field, place, given, "is too long");
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) refuse(field, place, given, "holds control characters");
  }
  if (field.choices.empty()) {
    if (field.name == "set") {
      const size_t equals = text.find('=');
      if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
        refuse(field, place, given, "is no change of a field");
      }
    }
    return std::string(text);
  }
  const std::string wanted = folded(text);
  for (std::string_view choice : field.choices) {
    if (folded(choice) == wanted) return std::string(choice);
  }
  for (const auto& synonym : field.synonyms) {
    if (folded(synonym.first) == wanted) return std::string(synonym.second);
  }
  refuse(field, place, given, "is not known here");
}

void check_range(const Field& field, const Place& place, double value, std::string_view given) {
  if (field.unit == Unit::ratio && field.high == 1 && value > 1 && value <= 100 && given.find('%') == given.npos) {
    refuse(field, place, given, fmt::format("is more than the whole; say {}% or {:g}", given, value / 100));
  }
  if (!(value >= field.low && value <= field.high)) refuse(field, place, given, "is out of range");
}

bool truth(const Field& field, const Place& place, std::string_view text) {
  const std::string wanted = folded(text);
  for (const char* yes : {"true", "yes", "on", "1"}) {
    if (wanted == yes) return true;
  }
  for (const char* no : {"false", "no", "off", "0"}) {
    if (wanted == no) return false;
  }
  refuse(field, place, text, "is neither true nor false");
}

// The words between commas; commas inside brackets or quotes belong to the word.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth <= 0 && !quoted)) {
      out.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == '[' || text[i] == '{') {
      ++depth;
    } else if (text[i] == ']' || text[i] == '}') {
      --depth;
    }
  }
  return out;
}

}  // namespace

bool Field::is_flag() const {
  return std::holds_alternative<bool Job::*>(slot) || std::holds_alternative<std::optional<bool> Job::*>(slot);
}

bool Field::is_list() const { return std::holds_alternative<std::vector<std::string> Job::*>(slot); }

bool Field::is_number() const {
  return std::holds_alternative<std::optional<int64_t> Job::*>(slot) ||
         std::holds_alternative<std::optional<double> Job::*>(slot);
}

bool Field::is_set(const Job& job) const {
  if (const auto* s = std::get_if<std::string Job::*>(&slot)) return !(job.**s).empty();
  if (const auto* v = std::get_if<std::vector<std::string> Job::*>(&slot)) return !(job.**v).empty();
  if (const auto* b = std::get_if<bool Job::*>(&slot)) return job.**b;
  if (const auto* o = std::get_if<std::optional<std::string> Job::*>(&slot)) return (job.**o).has_value();
  if (const auto* i = std::get_if<std::optional<int64_t> Job::*>(&slot)) return (job.**i).has_value();
  if (const auto* d = std::get_if<std::optional<double> Job::*>(&slot)) return (job.**d).has_value();
  return (job.*std::get<std::optional<bool> Job::*>(slot)).has_value();
}

std::string Field::accepted() const {
  if (is_flag()) return "true or false";
  if (!choices.empty()) {
    std::string out;
    for (size_t i = 0; i < choices.size(); ++i) {
      if (i > 0) out += i + 1 < choices.size() ? ", " : " or ";
      out += choices[i];
    }
    return is_list() ? "any of " + out : out;
  }
  if (is_number()) {
    const bool whole = std::holds_alternative<std::optional<int64_t> Job::*>(slot);
    const std::string kind = unit == Unit::none && whole ? "a whole number" : std::string(unit_help(unit));
    // The ends of a ratio are shares, those of an amount may be shown in its own unit.
    if (unit == Unit::bytes) return fmt::format("{}, at least {} B", kind, bound(low));
    if (unit == Unit::bandwidth || unit == Unit::flops) return kind;
    return fmt::format("{}, from {} to {}", kind, bound(low), bound(high));
  }
  if (name == "set") return "FIELD=VALUE, such as kv_heads=8";
  if (is_list()) return "words separated by commas";
  return std::string(help_en);
}

void set_from_text(Job& job, const Field& field, std::string_view value, const Place& place) {
  if (const auto* s = std::get_if<std::string Job::*>(&field.slot)) {
    job.** s = word(field, place, value);
  } else if (const auto* o = std::get_if<std::optional<std::string> Job::*>(&field.slot)) {
    job.** o = word(field, place, value);
  } else if (const auto* v = std::get_if<std::vector<std::string> Job::*>(&field.slot)) {
    std::vector<std::string> list;
    for (std::string_view part : words_of(value)) list.push_back(word(field, place, part));
    job.** v = std::move(list);
  } else if (const auto* b = std::get_if<bool Job::*>(&field.slot)) {
    job.** b = truth(field, place, value);
  } else if (const auto* ob = std::get_if<std::optional<bool> Job::*>(&field.slot)) {
    job.** ob = truth(field, place, value);
  } else {
    try {
      if (const auto* i = std::get_if<std::optional<int64_t> Job::*>(&field.slot)) {
        const int64_t number = parse_integer(value, field.unit, place.shown);
        check_range(field, place, static_cast<double>(number), value);
        job.** i = number;
      } else {
        const double number = parse_quantity(value, field.unit, place.shown);
        check_range(field, place, number, value);
        job.*std::get<std::optional<double> Job::*>(field.slot) = number;
      }
    } catch (const InputError& e) {
      Fault fault = e.fault();
      fault.file = place.file;
      fault.line = place.line;
      fault.accepted = field.accepted();
      throw InputError(std::move(fault));
    }
  }
}

void set_from_number(Job& job, const Field& field, const Document& number, const Place& place) {
  const std::string shown = number.to_text();
  if (!std::isfinite(number.number())) refuse(field, place, shown, "is not finite");
  if (const auto* i = std::get_if<std::optional<int64_t> Job::*>(&field.slot)) {
    const double v = number.number();
    if (number.is_real() && v != std::floor(v)) refuse(field, place, shown, "is not a whole number");
    check_range(field, place, v, shown);
    job.** i = number.is_integer() ? number.integer() : static_cast<int64_t>(v);
  } else {
    check_range(field, place, number.number(), shown);
    job.*std::get<std::optional<double> Job::*>(field.slot) = number.number();
  }
}

void set_from_words(Job& job, const Field& field, const std::vector<std::string>& list, const Place& place) {
  std::vector<std::string> words;
  for (const std::string& item : list) words.push_back(word(field, place, item));
  job.*std::get<std::vector<std::string> Job::*>(field.slot) = std::move(words);
}

void set_field(Job& job, const Field& field, std::string_view value, std::string_view shown) {
  set_from_text(job, field, value, {.file = {}, .line = 0, .shown = std::string(shown)});
}

}  // namespace vram
