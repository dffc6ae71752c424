#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "base/error.h"

namespace vram {
namespace {

struct Suffix {
  std::string_view text;
  double factor;
};

constexpr double k1024 = 1024.0;

constexpr std::array<Suffix, 12> kCountSuffixes = {{{"", 1},
                                                    {"k", 1e3},
                                                    {"K", 1e3},
                                                    {"m", 1e6},
                                                    {"M", 1e6},
                                                    {"b", 1e9},
                                                    {"B", 1e9},
                                                    {"g", 1e9},
                                                    {"G", 1e9},
                                                    {"t", 1e12},
                                                    {"T", 1e12},
                                                    {"P", 1e15}}};

constexpr std::array<Suffix, 5> kTokenSuffixes = {
    {{"", 1}, {"k", k1024}, {"K", k1024}, {"m", k1024 * k1024}, {"M", k1024 * k1024}}};

constexpr std::array<Suffix, 23> kByteSuffixes = {{{"", 1},
                                                   {"B", 1},
                                                   {"kB", 1e3},
                                                   {"KB", 1e3},
                                                   {"MB", 1e6},
                                                   {"GB", 1e9},
                                                   {"TB", 1e12},
                                                   {"PB", 1e15},
                                                   {"kb", 1e3},
                                                   {"mb", 1e6},
                                                   {"gb", 1e9},
                                                   {"tb", 1e12},
                                                   {"KiB", k1024},
                                                   {"MiB", k1024* k1024},
                                                   {"GiB", k1024* k1024* k1024},
                                                   {"TiB", k1024* k1024* k1024* k1024},
                                                   {"PiB", k1024* k1024* k1024* k1024* k1024},
                                                   {"kib", k1024},
                                                   {"mib", k1024* k1024},
                                                   {"gib", k1024* k1024* k1024},
                                                   {"tib", k1024* k1024* k1024* k1024},
                                                   {"G", 1e9},
                                                   {"T", 1e12}}};

// Case tells bits from bytes in a rate: "Gb/s" and "Gbit/s" are bits, "GB/s" is bytes.
constexpr std::array<Suffix, 28> kRateSuffixes = {{{"B/s", 1},
                                                   {"kB/s", 1e3},
                                                   {"KB/s", 1e3},
                                                   {"MB/s", 1e6},
                                                   {"GB/s", 1e9},
                                                   {"TB/s", 1e12},
                                                   {"KiB/s", k1024},
                                                   {"MiB/s", k1024* k1024},
                                                   {"GiB/s", k1024* k1024* k1024},
                                                   {"TiB/s", k1024* k1024* k1024* k1024},
                                                   {"GBps", 1e9},
                                                   {"TBps", 1e12},
                                                   {"MBps", 1e6},
                                                   {"b/s", 0.125},
                                                   {"kb/s", 125},
                                                   {"Kb/s", 125},
                                                   {"Mb/s", 125e3},
                                                   {"Gb/s", 125e6},
                                                   {"Tb/s", 125e9},
                                                   {"kbit/s", 125},
                                                   {"Mbit/s", 125e3},
                                                   {"Gbit/s", 125e6},
                                                   {"Tbit/s", 125e9},
                                                   {"Mbps", 125e3},
                                                   {"Gbps", 125e6},
                                                   {"Tbps", 125e9},
                                                   {"bps", 0.125},
                                                   {"gbps", 125e6}}};

constexpr std::array<Suffix, 17> kFlopsSuffixes = {{{"", 1},
                                                    {"FLOPS", 1},
                                                    {"GFLOPS", 1e9},
                                                    {"TFLOPS", 1e12},
                                                    {"PFLOPS", 1e15},
                                                    {"EFLOPS", 1e18},
                                                    {"GFLOP/s", 1e9},
                                                    {"TFLOP/s", 1e12},
                                                    {"PFLOP/s", 1e15},
                                                    {"gflops", 1e9},
                                                    {"tflops", 1e12},
                                                    {"pflops", 1e15},
                                                    {"GFLOPs", 1e9},
                                                    {"TFLOPs", 1e12},
                                                    {"PFLOPs", 1e15},
                                                    {"Tflops", 1e12},
                                                    {"T", 1e12}}};

constexpr std::array<Suffix, 16> kSecondSuffixes = {{{"", 1},
                                                     {"s", 1},
                                                     {"sec", 1},
                                                     {"second", 1},
                                                     {"seconds", 1},
                                                     {"ms", 1e-3},
                                                     {"us", 1e-6},
                                                     {"ns", 1e-9},
                                                     {"m", 60},
                                                     {"min", 60},
                                                     {"minutes", 60},
                                                     {"h", 3600},
                                                     {"hours", 3600},
                                                     {"d", 86400},
                                                     {"day", 86400},
                                                     {"days", 86400}}};

constexpr std::array<Suffix, 2> kRatioSuffixes = {{{"", 1}, {"%", 0.01}}};
constexpr std::array<Suffix, 1> kPlain = {{{"", 1}}};

template <size_t N>
const Suffix* find_suffix(const std::array<Suffix, N>& table, std::string_view text) {
  for (const Suffix& s : table) {
    if (s.text == text) return &s;
  }
  return nullptr;
}

const Suffix* find_suffix(Unit unit, std::string_view text) {
  switch (unit) {
    case Unit::count: return find_suffix(kCountSuffixes, text);
    case Unit::tokens: return find_suffix(kTokenSuffixes, text);
    case Unit::bytes: return find_suffix(kByteSuffixes, text);
    case Unit::bandwidth: return find_suffix(kRateSuffixes, text);
    case Unit::flops: return find_suffix(kFlopsSuffixes, text);
    case Unit::seconds: return find_suffix(kSecondSuffixes, text);
    case Unit::ratio: return find_suffix(kRatioSuffixes, text);
    case Unit::none:
    case Unit::money: return find_suffix(kPlain, text);
  }
  return nullptr;
}

[[noreturn]] void refuse(std::string_view text, Unit unit, std::string_view field, std::string problem) {
  throw InputError({.field = std::string(field),
                    .value = std::string(text),
                    .problem = std::move(problem),
                    .accepted = std::string(unit_help(unit))});
}

// "1,048,576", "1_000" and "1 000" are how people write long numbers; the separators are dropped between digits only.
std::string without_separators(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between = i > 0 && i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i - 1])) &&
                         std::isdigit(static_cast<unsigned char>(text[i + 1]));
    if ((text[i] == ',' || text[i] == '_') && between) continue;
    out += text[i];
  }
  return out;
}

}  // namespace

std::string_view unit_help(Unit unit) {
  switch (unit) {
    case Unit::none: return "a number";
    case Unit::count: return "a count such as 7e9, 7B, 350M or 1.5T";
    case Unit::tokens: return "tokens such as 4096 or 32k (32 x 1024)";
    case Unit::bytes: return "bytes such as 80GiB, 80GB or 512MiB";
    case Unit::bandwidth: return "a rate such as 64GB/s or 400Gb/s (bits)";
    case Unit::flops: return "operations a second such as 312 TFLOPS";
    case Unit::ratio: return "a share such as 45% or 0.45";
    case Unit::seconds: return "a duration such as 40s, 3min or 2d";
    case Unit::money: return "a price such as 2.5";
  }
  return {};
}

double parse_quantity(std::string_view text, Unit unit, std::string_view field) {
  if (text.size() > 64) refuse(text, unit, field, "is too long for a number");
  const std::string cleaned = without_separators(text);
  const char* begin = cleaned.c_str();
  while (*begin == ' ') ++begin;
  const char first = *begin == '-' || *begin == '+' ? begin[1] : *begin;
  // strtod would also take hexadecimal, "nan" and "inf".
  if (!(std::isdigit(static_cast<unsigned char>(first)) || first == '.') ||
      (first == '0' && (begin[1] == 'x' || begin[1] == 'X'))) {
    refuse(text, unit, field, "is not a number");
  }
  char* end = nullptr;
  double value = std::strtod(begin, &end);
  std::string_view suffix(end);
  while (!suffix.empty() && suffix.front() == ' ') suffix.remove_prefix(1);
  while (!suffix.empty() && suffix.back() == ' ') suffix.remove_suffix(1);
  if (std::signbit(value)) refuse(text, unit, field, "must not be negative");
  const Suffix* known = find_suffix(unit, suffix);
  if (!known) {
    std::string problem = "has an unknown unit '" + printable(suffix, 16) + "'";
    if (unit == Unit::bytes && (suffix == "Gb" || suffix == "Mb" || suffix == "Gbit")) {
      problem = "is in bits; memory is counted in bytes";
    }
    if (unit == Unit::bandwidth && suffix.empty()) problem = "lacks a unit";
    if (unit == Unit::bandwidth && find_suffix(Unit::bytes, suffix) && !suffix.empty()) {
      problem = "is an amount, not a rate";
    }
    refuse(text, unit, field, problem);
  }
  value *= known->factor;
  if (!std::isfinite(value) || value > 9.2e18) {
    if (unit != Unit::flops && unit != Unit::bandwidth) refuse(text, unit, field, "is too large");
    if (!std::isfinite(value) || value > 1e30) refuse(text, unit, field, "is too large");
  }
  return value;
}

int64_t parse_integer(std::string_view text, Unit unit, std::string_view field) {
  const double value = parse_quantity(text, unit, field);
  // Digits beyond 2^53 are lost in a double: read plain integers exactly.
  const std::string cleaned = without_separators(text);
  if (!cleaned.empty() && cleaned.find_first_not_of("0123456789") == std::string::npos && cleaned.size() <= 18) {
    return std::strtoll(cleaned.c_str(), nullptr, 10);
  }
  // A parsed decimal times 1024 may miss the whole number by rounding: "0.3k" is not whole, "1.5k" is.
  const double rounded = std::nearbyint(value);
  if (unit == Unit::bytes) return static_cast<int64_t>(rounded);
  if (std::abs(value - rounded) > 1e-9 * std::max(1.0, rounded)) refuse(text, unit, field, "is not a whole number");
  return static_cast<int64_t>(rounded);
}

std::string with_commas(int64_t value) {
  std::string digits = fmt::format("{}", value);
  const size_t start = digits[0] == '-' ? 1 : 0;
  for (size_t i = digits.size(); i > start + 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string format_number(double value, int digits) {
  std::string text = fmt::format("{:.{}f}", value, digits);
  const size_t start = text[0] == '-' ? 1 : 0;
  size_t point = text.find('.');
  if (point == std::string::npos) point = text.size();
  for (size_t i = point; i > start + 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string format_gib(Bytes bytes, int digits) {
  const double v = static_cast<double>(bytes);
  const double a = std::abs(v);
  if (bytes == 0) return "0 GiB";
  if (a >= 0.1 * kGiB) return format_number(v / kGiB, digits) + " GiB";
  if (a >= 0.1 * kMiB) return format_number(v / kMiB, digits > 1 ? 1 : digits) + " MiB";
  if (a >= kKiB) return format_number(v / kKiB, 1) + " KiB";
  return with_commas(bytes) + " B";
}

std::string format_gb(double bytes, int digits) {
  const double a = std::abs(bytes);
  if (a >= 1e15) return format_number(bytes / 1e15, digits) + " PB";
  if (a >= 1e12) return format_number(bytes / 1e12, digits) + " TB";
  if (a >= 1e8) return format_number(bytes / 1e9, digits) + " GB";
  if (a >= 1e5) return format_number(bytes / 1e6, digits) + " MB";
  if (a >= 1e3) return format_number(bytes / 1e3, digits) + " kB";
  return format_number(bytes, 0) + " B";
}

std::string format_count(double value) {
  const double a = std::abs(value);
  if (a >= 1e15) return fmt::format("{:.3g}", value);
  if (a >= 1e12) return fmt::format("{:.2f} T", value / 1e12);
  if (a >= 1e9) return fmt::format("{:.2f} B", value / 1e9);
  if (a >= 1e6) return fmt::format("{:.2f} M", value / 1e6);
  if (a >= 1e3) return fmt::format("{:.1f} k", value / 1e3);
  return fmt::format("{:.0f}", value);
}

std::string format_seconds(double s) {
  if (!std::isfinite(s)) return "never";
  if (s >= 2 * 86400.0) return format_number(s / 86400, 1) + " days";
  if (s >= 2 * 3600.0) return format_number(s / 3600, 1) + " h";
  if (s >= 120) return format_number(s / 60, 1) + " min";
  if (s >= 1) return format_number(s, 2) + " s";
  if (s >= 1e-3) return format_number(s * 1e3, s >= 0.1 ? 0 : 2) + " ms";
  return format_number(s * 1e6, 1) + " us";
}

}  // namespace vram
