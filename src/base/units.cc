#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace vram {
namespace {

// A suffix multiplies by `factor` * 10^`power`. The power of ten is kept apart so that decimal quantities are exact:
// 45% is the double nearest to 0.45 and 1.1B is the integer 1,100,000,000.
struct Suffix {
  std::string_view text;
  int64_t factor;
  int power;
};

constexpr int64_t kKi = int64_t{1} << 10;
constexpr int64_t kMi = int64_t{1} << 20;
constexpr int64_t kGi = int64_t{1} << 30;
constexpr int64_t kTi = int64_t{1} << 40;
constexpr int64_t kPi = int64_t{1} << 50;

constexpr Suffix kCountSuffixes[] = {{"", 1, 0},   {"k", 1, 3},  {"K", 1, 3}, {"m", 1, 6}, {"M", 1, 6},
                                     {"b", 1, 9},  {"B", 1, 9},  {"g", 1, 9}, {"G", 1, 9}, {"t", 1, 12},
                                     {"T", 1, 12}, {"p", 1, 15}, {"P", 1, 15}};

constexpr Suffix kTokenSuffixes[] = {{"", 1, 0}, {"k", kKi, 0}, {"K", kKi, 0}, {"m", kMi, 0}, {"M", kMi, 0}};

// Case tells bits from bytes: "Gb" is a gigabit and is refused with a word of its own. All-lower-case "gb" is how many
// tools and people write gigabytes of memory.
constexpr Suffix kByteSuffixes[] = {
    {"", 1, 0},      {"B", 1, 0},     {"byte", 1, 0},  {"bytes", 1, 0}, {"kB", 1, 3},    {"KB", 1, 3},
    {"MB", 1, 6},    {"GB", 1, 9},    {"TB", 1, 12},   {"PB", 1, 15},   {"kb", 1, 3},    {"mb", 1, 6},
    {"gb", 1, 9},    {"tb", 1, 12},   {"pb", 1, 15},   {"k", 1, 3},     {"K", 1, 3},     {"M", 1, 6},
    {"G", 1, 9},     {"T", 1, 12},    {"P", 1, 15},    {"KiB", kKi, 0}, {"MiB", kMi, 0}, {"GiB", kGi, 0},
    {"TiB", kTi, 0}, {"PiB", kPi, 0}, {"kiB", kKi, 0}, {"kib", kKi, 0}, {"mib", kMi, 0}, {"gib", kGi, 0},
    {"tib", kTi, 0}, {"pib", kPi, 0}, {"KIB", kKi, 0}, {"MIB", kMi, 0}, {"GIB", kGi, 0}, {"TIB", kTi, 0},
    {"Ki", kKi, 0},  {"Mi", kMi, 0},  {"Gi", kGi, 0},  {"Ti", kTi, 0},  {"Pi", kPi, 0}};
constexpr std::string_view kBitSuffixes[] = {"b",    "Kb",    "Mb",    "Gb",    "Tb",   "Kib",  "Mib",
                                             "Gib",  "bit",   "kbit",  "Kbit",  "Mbit", "Gbit", "Tbit",
                                             "bits", "kbits", "Mbits", "Gbits", "Tbits"};

// "Gb/s", "Gbit/s" and "Gbps" are bits, "GB/s" and "GBps" bytes; a bit is an eighth of a byte.
constexpr Suffix kRateSuffixes[] = {
    {"B/s", 1, 0},      {"kB/s", 1, 3},     {"KB/s", 1, 3},     {"MB/s", 1, 6},     {"GB/s", 1, 9},
    {"TB/s", 1, 12},    {"PB/s", 1, 15},    {"KiB/s", kKi, 0},  {"MiB/s", kMi, 0},  {"GiB/s", kGi, 0},
    {"TiB/s", kTi, 0},  {"kBps", 1, 3},     {"KBps", 1, 3},     {"MBps", 1, 6},     {"GBps", 1, 9},
    {"TBps", 1, 12},    {"b/s", 125, -3},   {"kb/s", 125, 0},   {"Kb/s", 125, 0},   {"Mb/s", 125, 3},
    {"Gb/s", 125, 6},   {"Tb/s", 125, 9},   {"bit/s", 125, -3}, {"kbit/s", 125, 0}, {"Kbit/s", 125, 0},
    {"Mbit/s", 125, 3}, {"Gbit/s", 125, 6}, {"Tbit/s", 125, 9}, {"bps", 125, -3},   {"kbps", 125, 0},
    {"Kbps", 125, 0},   {"Mbps", 125, 3},   {"Gbps", 125, 6},   {"Tbps", 125, 9},   {"mbps", 125, 3},
    {"gbps", 125, 6},   {"tbps", 125, 9}};

constexpr Suffix kSecondSuffixes[] = {
    {"", 1, 0},         {"s", 1, 0},       {"sec", 1, 0},        {"secs", 1, 0},    {"second", 1, 0}, {"seconds", 1, 0},
    {"ms", 1, -3},      {"us", 1, -6},     {"\xc2\xb5s", 1, -6}, {"ns", 1, -9},     {"m", 60, 0},     {"min", 60, 0},
    {"mins", 60, 0},    {"minute", 60, 0}, {"minutes", 60, 0},   {"h", 3600, 0},    {"hr", 3600, 0},  {"hour", 3600, 0},
    {"hours", 3600, 0}, {"d", 86400, 0},   {"day", 86400, 0},    {"days", 86400, 0}};

constexpr Suffix kRatioSuffixes[] = {{"", 1, 0}, {"%", 1, -2}};
constexpr Suffix kPlain[] = {{"", 1, 0}};

template <size_t N>
std::optional<Suffix> look_up(const Suffix (&table)[N], std::string_view text) {
  for (const Suffix& s : table) {
    if (s.text == text) return s;
  }
  return std::nullopt;
}

// An optional prefix k .. E and any spelling of the word: "TFLOPS", "TFLOP/s", "Tflops", "TOPS", "T", or nothing.
std::optional<Suffix> flops_suffix(std::string_view text) {
  std::string lower;
  for (char c : text) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  static constexpr std::pair<char, int> kPrefixes[] = {{'k', 3}, {'m', 6}, {'g', 9}, {'t', 12}, {'p', 15}, {'e', 18}};
  int power = 0;
  for (const auto& prefix : kPrefixes) {
    if (!lower.empty() && lower[0] == prefix.first) power = prefix.second;
  }
  if (power > 0) lower.erase(0, 1);
  for (std::string_view word : {"", "flops", "flop/s", "flops/s", "ops", "op/s"}) {
    if (lower == word) return Suffix{text, 1, power};
  }
  return std::nullopt;
}

std::optional<Suffix> find_suffix(Unit unit, std::string_view text) {
  switch (unit) {
    case Unit::count:
      return look_up(kCountSuffixes, text);
    case Unit::tokens:
      return look_up(kTokenSuffixes, text);
    case Unit::bytes:
      return look_up(kByteSuffixes, text);
    case Unit::bandwidth:
      return look_up(kRateSuffixes, text);
    case Unit::flops:
      return flops_suffix(text);
    case Unit::seconds:
      return look_up(kSecondSuffixes, text);
    case Unit::ratio:
      return look_up(kRatioSuffixes, text);
    case Unit::none:
    case Unit::money:
      return look_up(kPlain, text);
  }
  return std::nullopt;
}

[[noreturn]] void refuse(std::string_view text, Unit unit, std::string_view field, std::string problem) {
  throw InputError({.field = std::string(field),
                    .value = std::string(text),
                    .problem = std::move(problem),
                    .accepted = std::string(unit_help(unit))});
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "1,048,576" and "1_000" are how people write long numbers. Commas count only as groups of three before the decimal
// point, since "1,5" is one and a half to many people and fifteen to nobody. Returns the length of the whole part and
// appends its digits; npos where commas group wrongly.
size_t read_whole_part(std::string_view text, std::string& digits) {
  size_t i = 0;
  size_t group = 0;  // digits since the last comma
  bool commas = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    const bool between = i > 0 && is_digit(text[i - 1]) && i + 1 < text.size() && is_digit(text[i + 1]);
    if (is_digit(c)) {
      digits += c;
      ++group;
    } else if (c == ',' && between) {
      if (commas ? group != 3 : group > 3) return std::string_view::npos;
      commas = true;
      group = 0;
    } else if (!(c == '_' && between)) {
      break;
    }
  }
  return commas && group != 3 ? std::string_view::npos : i;
}

// A quantity taken apart: digits * 10^power * factor, exactly.
struct Parsed {
  std::string digits;  // at least one
  int64_t power = 0;
  int64_t factor = 1;
  bool scaled = false;  // a suffix changed the value

  double value() const { return decimal_to_double(fmt::format("{}e{}", digits, power)) * static_cast<double>(factor); }
};

std::string unknown_unit(std::string_view suffix, Unit unit) {
  const auto is_bits = [&] {
    for (std::string_view bits : kBitSuffixes) {
      if (bits == suffix) return true;
    }
    return false;
  };
  if (unit == Unit::bytes && is_bits()) return "is in bits; memory is counted in bytes";
  if (unit == Unit::bytes && look_up(kRateSuffixes, suffix)) return "is a rate, not an amount";
  if (unit == Unit::bandwidth) {
    if (suffix.empty()) return "lacks a unit";
    if (look_up(kByteSuffixes, suffix) || is_bits()) return "is an amount, not a rate";
    if (suffix == "gb/s" || suffix == "mb/s" || suffix == "tb/s")
      return "does not say whether b is bits (Gb/s) or bytes (GB/s)";
  }
  return "has an unknown unit '" + printable(suffix, 16) + "'";
}

Parsed parse(std::string_view text, Unit unit, std::string_view field) {
  const std::string_view given = text;
  if (text.size() > 64) refuse(given, unit, field, "is too long for a number");
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.empty()) refuse(given, unit, field, "is empty");
  const bool negative = text.front() == '-';
  if (negative || text.front() == '+') text.remove_prefix(1);

  Parsed out;
  const size_t whole = read_whole_part(text, out.digits);
  if (whole == std::string_view::npos) refuse(given, unit, field, "has commas that do not group thousands");
  text.remove_prefix(whole);
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    while (!text.empty() && is_digit(text.front())) {
      out.digits += text.front();
      --out.power;
      text.remove_prefix(1);
    }
    if (!text.empty() && (text.front() == '.' || text.front() == ',')) refuse(given, unit, field, "is not a number");
  }
  const bool hexadecimal = out.digits == "0" && !text.empty() && (text.front() == 'x' || text.front() == 'X');
  if (out.digits.empty() || hexadecimal) refuse(given, unit, field, "is not a number");
  if (!text.empty() && (text.front() == 'e' || text.front() == 'E')) {
    size_t end = text.size() > 1 && (text[1] == '-' || text[1] == '+') ? 2 : 1;
    const size_t start = end;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end > start) {  // else the letter begins a suffix ("EFLOPS")
      // At most 64 characters were given; any exponent beyond a few digits is as good as infinite.
      const std::string digits(text.substr(start, std::min<size_t>(end - start, 9)));
      const int64_t exponent = end - start > 9 ? 999'999'999 : std::strtoll(digits.c_str(), nullptr, 10);
      out.power += text[1] == '-' ? -exponent : exponent;
      text.remove_prefix(end);
    }
  }
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const auto suffix = find_suffix(unit, text);
  if (!suffix) refuse(given, unit, field, unknown_unit(text, unit));
  if (negative && out.digits.find_first_not_of('0') != std::string::npos)
    refuse(given, unit, field, "must not be negative");
  out.factor = suffix->factor;
  out.power += suffix->power;
  out.scaled = suffix->factor != 1 || suffix->power != 0;
  return out;
}

constexpr double kLargestInteger = 9.2e18;  // below 2^63, so that rounding can't leave int64
constexpr double kLargestRate = 1e30;

bool is_rate(Unit unit) { return unit == Unit::flops || unit == Unit::bandwidth; }

__extension__ typedef unsigned __int128 Wide;  // -Wpedantic does not know the type

// digits * factor * 10^power as an integer, exactly. Nullopt where it has a fraction; `too_large` where it leaves
// int64.
std::optional<int64_t> exact_integer(const Parsed& p, bool& too_large) {
  std::string digits = p.digits;
  int64_t power = p.power;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return 0;
  while (digits.back() == '0') {
    digits.pop_back();
    ++power;
  }
  // 2^10 and the like take part in cancelling powers of ten, so multiply first, in 128 bits: 38 digits. Factors have up
  // to 16, so 22 are left; a number with more significant digits is no whole number that fits int64.
  if (digits.size() > 22) {
    too_large = p.value() > kLargestInteger;
    return std::nullopt;
  }
  Wide value = 0;
  for (char c : digits) value = value * 10 + static_cast<unsigned>(c - '0');
  value *= static_cast<Wide>(p.factor);
  constexpr auto kMost = static_cast<Wide>(std::numeric_limits<int64_t>::max());
  for (; power > 0; --power) {
    value *= 10;
    if (value > kMost) {
      too_large = true;
      return std::nullopt;
    }
  }
  for (; power < 0; ++power) {
    if (value % 10 != 0) return std::nullopt;
    value /= 10;
  }
  too_large = value > kMost;
  if (too_large) return std::nullopt;
  return static_cast<int64_t>(value);
}

}  // namespace

std::string_view unit_help(Unit unit) {
  switch (unit) {
    case Unit::none:
      return "a number";
    case Unit::count:
      return "a count such as 7e9, 7B, 350M or 1.5T";
    case Unit::tokens:
      return "tokens such as 4096 or 32k (32 x 1024)";
    case Unit::bytes:
      return "bytes such as 80GiB, 80GB or 512MiB";
    case Unit::bandwidth:
      return "a rate such as 64GB/s or 400Gb/s (bits)";
    case Unit::flops:
      return "operations a second such as 312 TFLOPS";
    case Unit::ratio:
      return "a share such as 45% or 0.45";
    case Unit::seconds:
      return "a duration such as 40s, 3min or 2d";
    case Unit::money:
      return "a price such as 2.5";
  }
  return {};
}

double parse_quantity(std::string_view text, Unit unit, std::string_view field) {
  const double value = parse(text, unit, field).value();
  if (!(value <= (is_rate(unit) ? kLargestRate : kLargestInteger))) refuse(text, unit, field, "is too large");
  return value;
}

int64_t parse_integer(std::string_view text, Unit unit, std::string_view field) {
  const Parsed parsed = parse(text, unit, field);
  bool too_large = false;
  if (const auto exact = exact_integer(parsed, too_large)) return *exact;
  const double value = parsed.value();
  if (too_large || !(value <= kLargestInteger)) refuse(text, unit, field, "is too large");
  // A card's "79.15GiB" is meant to the byte only as far as it is written.
  if (unit == Unit::bytes && parsed.scaled) return static_cast<int64_t>(std::nearbyint(value));
  refuse(text, unit, field, "is not a whole number");
}

std::string with_commas(int64_t value) {
  std::string digits = fmt::format("{}", value);
  const size_t start = digits[0] == '-' ? 1 : 0;
  for (size_t i = digits.size(); i > start + 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string format_number(double value, int digits) {
  // Beyond 2^53 a double has no digits left to print.
  if (std::isfinite(value) && std::abs(value) >= 1e16) return fmt::format("{:.3g}", value);
  std::string text = fmt::format("{:.{}f}", value, digits);
  if (text[0] == '-' && text.find_first_of("123456789in") == std::string::npos) text.erase(0, 1);  // no "-0.0"
  const size_t start = text[0] == '-' ? 1 : 0;
  size_t point = text.find('.');
  if (point == std::string::npos) point = text.size();
  for (size_t i = point; i > start + 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

namespace {

struct Scale {
  double from;  // the smallest magnitude that is shown on this scale
  double unit;
  int digits;
  std::string_view name;
};

// The first scale (largest first) that the value reaches once it is rounded: 999.97 million is shown as 1.00 billion,
// not as 1,000.00 million.
template <size_t N>
std::string scaled(double value, const Scale (&scales)[N]) {
  const double magnitude = std::abs(value);
  for (size_t i = 0; i < N; ++i) {
    const Scale& s = scales[i];
    const Scale& below = scales[std::min(i + 1, N - 1)];
    const double half_digit = 0.5 * std::pow(10.0, -below.digits) * below.unit;
    if (magnitude >= s.from || (magnitude + half_digit >= s.from && i + 1 < N)) {
      return format_number(value / s.unit, s.digits) + std::string(s.name);
    }
  }
  return format_number(value / scales[N - 1].unit, scales[N - 1].digits) + std::string(scales[N - 1].name);
}

}  // namespace

std::string format_gib(Bytes bytes, int digits) {
  if (bytes == 0) return "0 GiB";
  const double gib = static_cast<double>(kGiB);
  const double mib = static_cast<double>(kMiB);
  const Scale scales[] = {{0.1 * gib, gib, digits, " GiB"},
                          {0.1 * mib, mib, std::min(digits, 1), " MiB"},
                          {1024, 1024, 1, " KiB"},
                          {0, 1, 0, " B"}};
  return scaled(static_cast<double>(bytes), scales);
}

std::string format_gb(double bytes, int digits) {
  const Scale scales[] = {{1e15, 1e15, digits, " PB"}, {1e12, 1e12, digits, " TB"}, {1e8, 1e9, digits, " GB"},
                          {1e5, 1e6, digits, " MB"},   {1e3, 1e3, digits, " kB"},   {0, 1, 0, " B"}};
  return scaled(bytes, scales);
}

std::string format_count(double value) {
  if (std::abs(value) >= 1e15) return fmt::format("{:.3g}", value);
  if (value != 0 && std::abs(value) < 10 && value != std::floor(value)) return fmt::format("{:.2g}", value);
  const Scale scales[] = {
      {1e12, 1e12, 2, " T"}, {1e9, 1e9, 2, " B"}, {1e6, 1e6, 2, " M"}, {1e3, 1e3, 1, " k"}, {0, 1, 0, ""}};
  return scaled(value, scales);
}

std::string format_seconds(double s) {
  if (std::isnan(s)) return "unknown";
  if (std::isinf(s)) return "never";
  if (s == 0) return "0 s";
  if (std::abs(s) >= 86400e9) return fmt::format("{:.3g} days", s / 86400);
  const Scale scales[] = {{2 * 86400.0, 86400, 1, " days"},
                          {2 * 3600.0, 3600, 1, " h"},
                          {120, 60, 1, " min"},
                          {1, 1, 2, " s"},
                          {0.1, 1e-3, 0, " ms"},
                          {1e-3, 1e-3, 2, " ms"},
                          {0, 1e-6, 1, " us"}};
  return scaled(s, scales);
}

}  // namespace vram
