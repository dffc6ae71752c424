#include "api/claim_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "model/model.h"

namespace vram {
namespace {

constexpr int64_t kMostCards = 1'000'000;
constexpr size_t kLongestName = 80;
constexpr int kMostWords = 6;  // of a model's or device's name

using Numbers = std::map<std::string, int64_t, std::less<>>;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

size_t skip_spaces(std::string_view text, size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  return at;
}

bool ends_word(std::string_view text, size_t end) {
  return end == 0 || end >= text.size() || !is_word(text[end - 1]) || !is_word(text[end]);
}

struct Read {
  double value = 0;
  size_t end = 0;
};

// "8", "8,192", "6.7".
std::optional<Read> digits_at(std::string_view text, size_t at) {
  std::string plain;
  size_t end = at;
  bool point = false;
  while (end < text.size() && plain.size() < 25) {
    const char c = text[end];
    if (is_digit(c)) {
      plain += c;
    } else if (c == '.' && !point && !plain.empty() && end + 1 < text.size() && is_digit(text[end + 1])) {
      plain += c;
      point = true;
    } else if (c != ',' || plain.empty() || point || end + 3 >= text.size() || !is_digit(text[end + 1]) ||
               !is_digit(text[end + 2]) || !is_digit(text[end + 3])) {
      break;
    }
    ++end;
  }
  if (plain.empty()) return std::nullopt;
  return Read{decimal_to_double(plain), end};
}

// Chinese numerals and mixtures with digits: "四", "十六", "一千七百五十亿", "700亿", "1.5万亿". `digits_alone`:
// whether plain digits without a Chinese part count as well.
std::optional<Read> numeral_at(std::string_view text, size_t at, bool digits_alone) {
  static constexpr std::pair<std::string_view, double> digits[] = {{"零", 0}, {"一", 1}, {"二", 2}, {"两", 2},
                                                                   {"三", 3}, {"四", 4}, {"五", 5}, {"六", 6},
                                                                   {"七", 7}, {"八", 8}, {"九", 9}};
  static constexpr std::pair<std::string_view, double> tens[] = {
      {"十", 10}, {"百", 100}, {"千", 1e3}, {"万", 1e4}, {"亿", 1e8}};
  double total = 0, section = 0;
  std::optional<double> digit;
  bool chinese = false, any = false;
  size_t end = at;
  if (const auto plain = digits_at(text, at)) {
    digit = plain->value;
    end = plain->end;
    any = true;
  }
  for (size_t next = end;;) {
    next = skip_spaces(text, end);
    const std::string_view c = text.substr(next, 3);  // each of these characters takes three bytes
    const auto d = std::find_if(std::begin(digits), std::end(digits), [&](const auto& x) { return x.first == c; });
    const auto t = std::find_if(std::begin(tens), std::end(tens), [&](const auto& x) { return x.first == c; });
    if (d != std::end(digits)) {
      if (digit && *digit != 0) break;  // two digits in a row are no numeral
      if (next != end) break;
      digit = d->second;
    } else if (t != std::end(tens)) {
      if (t->second >= 1e4) {
        const double so_far = section + digit.value_or(0);
        total = t->second == 1e8 ? (total + so_far > 0 ? total + so_far : 1) * 1e8
                                 : total + (so_far > 0 ? so_far : 1) * 1e4;
        section = 0;
      } else {
        section += digit.value_or(1) * t->second;
      }
      digit.reset();
    } else {
      break;
    }
    chinese = any = true;
    end = next + 3;
    if (total > 1e18) return std::nullopt;
  }
  if (!any || (!chinese && !digits_alone)) return std::nullopt;
  return Read{total + section + digit.value_or(0), end};
}

// The longest word of `numbers` at `at`.
std::optional<Read> number_word_at(const Numbers& numbers, std::string_view text, size_t at) {
  std::optional<Read> best;
  for (const auto& [word, value] : numbers) {
    if (text.compare(at, word.size(), word) != 0 || !ends_word(text, at + word.size())) continue;
    if (!best || at + word.size() > best->end) best = Read{static_cast<double>(value), at + word.size()};
  }
  return best;
}

std::optional<Read> whole_number_at(const Numbers& numbers, std::string_view text, size_t at, double most) {
  auto n = numeral_at(text, at, true);
  if (!n) n = number_word_at(numbers, text, at);
  if (!n || n->value < 1 || n->value > most || n->value != std::floor(n->value) || !ends_word(text, n->end)) {
    return std::nullopt;
  }
  return n;
}

std::vector<Taken> whole_number(const Numbers& numbers, std::string_view text, size_t at) {
  const auto n = whole_number_at(numbers, text, at, 1e9);
  if (!n) return {};
  return {{n->end, std::to_string(static_cast<int64_t>(n->value))}};
}

std::string short_number(double value) { return fmt::format("{:.10g}", value); }

// The first of `units` that stands at `at` as a word.
template <size_t N>
std::optional<std::pair<std::string_view, size_t>> unit_at(
    std::string_view text, size_t at, const std::pair<std::string_view, std::string_view> (&units)[N]) {
  for (const auto& [spelling, unit] : units) {
    if (text.compare(at, spelling.size(), spelling) == 0 && ends_word(text, at + spelling.size())) {
      return std::make_pair(unit, at + spelling.size());
    }
  }
  return std::nullopt;
}

// --- sizes and models -----------------------------------------------------------------------------------------------

// "70B", "6.7 billion parameters", "700亿", "七十亿参数".
std::optional<Taken> size_at(const Numbers& numbers, std::string_view text, size_t at) {
  static constexpr std::pair<std::string_view, std::string_view> units[] = {
      {"billion", "B"}, {"bn", "B"}, {"b", "B"}, {"trillion", "T"}, {"t", "T"}, {"million", "M"}, {"m", "M"}};
  const auto sized = [](double value, char unit, size_t end) -> std::optional<Taken> {
    const double parameters = value * (unit == 'T' ? 1e12 : unit == 'B' ? 1e9 : 1e6);
    if (parameters < 1e6 || parameters > 1e15) return std::nullopt;
    return Taken{end, "size:" + short_number(value) + unit};
  };
  if (const auto n = numeral_at(text, at, false)) {
    // A numeral is a size from 亿 (10^8) on.
    if (text.substr(n->end - 3, 3) == "亿") return sized(n->value / 1e9, 'B', n->end);
  }
  auto n = numeral_at(text, at, true);
  if (!n) n = number_word_at(numbers, text, at);
  if (!n) return std::nullopt;
  size_t next = skip_spaces(text, n->end);
  if (next == n->end && next < text.size() && text[next] == '-') ++next;
  const auto unit = unit_at(text, next, units);
  if (!unit) return std::nullopt;
  size_t end = unit->second;
  for (std::string_view tail : {"-parameter", "-param"}) {
    if (text.compare(end, tail.size(), tail) == 0 && ends_word(text, end + tail.size())) {
      end += tail.size();
      break;
    }
  }
  return sized(n->value, unit->first.front(), end);
}

// The ends of the first words from `at` on, longest first: how far a name could reach.
std::vector<size_t> name_ends(std::string_view text, size_t at, std::string_view marks) {
  std::vector<size_t> ends;
  size_t i = at;
  while (i < text.size() && i - at < kLongestName && static_cast<int>(ends.size()) < kMostWords) {
    size_t end = i;
    while (end < text.size() && (is_word(text[end]) || marks.find(text[end]) != std::string_view::npos)) ++end;
    if (end == i) break;
    ends.push_back(end);
    if (end >= text.size() || text[end] != ' ') break;
    i = end + 1;
  }
  std::reverse(ends.begin(), ends.end());
  return ends;
}

std::vector<Taken> model(const Numbers& numbers, std::string_view text, size_t at) {
  std::vector<Taken> out;
  for (size_t end : name_ends(text, at, "-_./:")) {
    if (const CatalogueEntry* e = Catalogue::builtin().find(text.substr(at, end - at))) {
      out.push_back({end, "catalogue:" + std::string(e->id)});
    }
  }
  if (auto size = size_at(numbers, text, at)) out.push_back(std::move(*size));
  return out;
}

// --- cards ----------------------------------------------------------------------------------------------------------

std::optional<Taken> memory_at(std::string_view text, size_t at) {
  static constexpr std::pair<std::string_view, std::string_view> units[] = {
      {"gib", "GiB"}, {"gb", "GB"}, {"g", "GB"}, {"tib", "TiB"}, {"tb", "TB"}, {"gigabytes", "GB"}, {"gigabyte", "GB"}};
  const auto n = digits_at(text, at);
  if (!n || n->value <= 0 || n->value > 100'000) return std::nullopt;
  size_t next = skip_spaces(text, n->end);
  if (next == n->end && next < text.size() && text[next] == '-') ++next;
  const auto unit = unit_at(text, next, units);
  if (!unit) return std::nullopt;
  return Taken{unit->second, short_number(n->value) + std::string(unit->first)};
}

std::vector<Taken> device(const Devices& devices, std::string_view text, size_t at, bool plural) {
  std::vector<Taken> out;
  for (size_t end : name_ends(text, at, "-./")) {
    const std::string_view name = text.substr(at, end - at);
    const Device* d = devices.find(name);
    if (!d && plural && name.size() > 3 && name.back() == 's') d = devices.find(name.substr(0, name.size() - 1));
    if (!d) continue;
    std::string shown(name.substr(0, name.size() - (devices.find(name) ? 0 : 1)));
    for (char& c : shown) c = c == ' ' ? '-' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    out.push_back({end, std::move(shown)});
  }
  return out;
}

std::vector<Taken> canonical(const Devices& devices, std::string_view text, size_t at) {
  std::string counts;
  for (int i = 0; i < 2; ++i) {
    const auto n = digits_at(text, at);
    if (!n || n->value < 1 || n->value > kMostCards || n->value != std::floor(n->value)) break;
    size_t next = skip_spaces(text, n->end);
    if (next >= text.size() || (text[next] != 'x' && text[next] != '*')) break;
    counts += std::to_string(static_cast<int64_t>(n->value)) + "x";
    at = skip_spaces(text, next + 1);
  }
  if (counts.empty()) return {};
  std::vector<Taken> out = device(devices, text, at, true);
  if (const auto memory = memory_at(text, at)) out.push_back(*memory);
  for (Taken& t : out) t.value = counts + t.value;
  return out;
}

// --- amounts --------------------------------------------------------------------------------------------------------

// With `marked`, only where a unit says that tokens are meant: "32k", "12.8万".
std::vector<Taken> tokens(std::string_view text, size_t at, bool marked) {
  static constexpr std::pair<std::string_view, std::string_view> units[] = {{"k", "k"}, {"m", "M"}, {"million", "M"}};
  if (const auto n = numeral_at(text, at, false)) {  // "12.8万"
    if (n->value >= 1 && n->value <= 1e9 && n->value == std::floor(n->value)) {
      return {{n->end, std::to_string(static_cast<int64_t>(n->value))}};
    }
  }
  const auto n = digits_at(text, at);
  if (!n) return {};
  double value = n->value;
  size_t end = n->end;
  const size_t next = skip_spaces(text, end);
  if (const auto unit = unit_at(text, next, units)) {
    value *= unit->first == "k" ? 1024 : 1024 * 1024;
    end = unit->second;
  } else if (marked) {
    return {};
  }
  if (end < text.size() && text[end] == '-' && text.compare(end, 6, "-token") == 0) ++end;
  if (!ends_word(text, end) || value < 1 || value > 1e9 || value != std::floor(value)) return {};
  return {{end, std::to_string(static_cast<int64_t>(value))}};
}

std::vector<Taken> amount(std::string_view text, size_t at) {
  static constexpr std::pair<std::string_view, std::string_view> units[] = {
      {"gib", "GiB"}, {"gb", "GB"},   {"g", "GB"},  {"tib", "TiB"}, {"tb", "TB"},        {"mib", "MiB"},
      {"mb", "MB"},   {"kib", "KiB"}, {"kb", "kB"}, {"bytes", "B"}, {"gigabytes", "GB"}, {"t", "TB"}};
  const auto n = digits_at(text, at);
  if (!n || n->value <= 0) return {};
  const auto unit = unit_at(text, skip_spaces(text, n->end), units);
  if (!unit) return {};
  std::string digits(text.substr(at, n->end - at));
  digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
  return {{unit->second, digits + " " + std::string(unit->first)}};
}

template <class T>
std::vector<Taken> list_of(std::optional<T> one) {
  if (!one) return {};
  return {*one};
}

}  // namespace

Slots claim_slots(const Devices& devices, const Numbers& numbers) {
  Slots slots;
  slots.emplace("model", [&numbers](std::string_view t, size_t at) { return model(numbers, t, at); });
  slots.emplace("canonical", [&devices](std::string_view t, size_t at) { return canonical(devices, t, at); });
  slots.emplace("count", [&numbers](std::string_view t, size_t at) -> std::vector<Taken> {
    const auto n = whole_number_at(numbers, t, at, static_cast<double>(kMostCards));
    if (!n) return {};
    return {{n->end, std::to_string(static_cast<int64_t>(n->value))}};
  });
  slots.emplace("device", [&devices](std::string_view t, size_t at) { return device(devices, t, at, true); });
  slots.emplace("device_one", [&devices](std::string_view t, size_t at) { return device(devices, t, at, false); });
  slots.emplace("memory", [](std::string_view t, size_t at) { return list_of(memory_at(t, at)); });
  slots.emplace("tokens", [](std::string_view t, size_t at) { return tokens(t, at, false); });
  slots.emplace("tokens_k", [](std::string_view t, size_t at) { return tokens(t, at, true); });
  slots.emplace("number", [&numbers](std::string_view t, size_t at) { return whole_number(numbers, t, at); });
  slots.emplace("ratio", [&numbers](std::string_view t, size_t at) -> std::vector<Taken> {
    static constexpr std::pair<std::string_view, std::string_view> units[] = {
        {"x", ""}, {"times", ""}, {"-fold", ""}, {"倍", ""}};
    auto n = numeral_at(t, at, true);
    if (!n) n = number_word_at(numbers, t, at);
    if (!n) return {};
    const auto unit = unit_at(t, skip_spaces(t, n->end), units);
    if (!unit) return {};
    return {{unit->second, short_number(n->value)}};
  });
  slots.emplace("decimal", [](std::string_view t, size_t at) -> std::vector<Taken> {
    const auto n = digits_at(t, at);
    if (!n || !ends_word(t, n->end)) return {};
    return {{n->end, short_number(n->value)}};
  });
  slots.emplace("amount", amount);
  return slots;
}

std::vector<std::string> claim_slot_names() {
  return {"model",  "canonical", "count",  "device", "device_one", "memory",
          "tokens", "tokens_k",  "number", "ratio",  "decimal",    "amount"};
}

}  // namespace vram
