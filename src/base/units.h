#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vram {

using Bytes = int64_t;

inline constexpr Bytes kKiB = 1024;
inline constexpr Bytes kMiB = 1024 * kKiB;
inline constexpr Bytes kGiB = 1024 * kMiB;
inline constexpr Bytes kGB = 1'000'000'000;

/// The quantity a text stands for decides what its suffix means.
enum class Unit : uint8_t {
  none,       ///< a plain number, no suffix
  count,      ///< of parameters, tokens in all: k, M, B (or G), T are powers of 1000; "1.5T" = 1.5e12
  tokens,     ///< of one sequence: k and M are 1024 and 1024^2; "32k" = 32,768; a plain number is literal
  bytes,      ///< "80GiB" = 80 * 2^30, "80GB" = "80G" = 80e9; a bare number is bytes; bits are refused
  bandwidth,  ///< bytes a second: "64GB/s", "400Gb/s" (bits: 50e9 B/s), "50GiB/s"
  flops,      ///< operations a second: "312 TFLOPS", "0.989 PFLOPS"
  ratio,      ///< "45%" or "0.45"
  seconds,    ///< "40s", "2ms", "3min", "1h", "2d"
  money,      ///< per device-hour, plain number
};

/// Parses a quantity; `field` names it in the error. Numbers may be written 1048576, 1,048,576, 1_048_576 or 1.5e6,
/// with a space before the suffix. Throws InputError on unknown or wrong-dimension suffixes, NaN, infinities,
/// hexadecimal, negative numbers, and values over 9.2e18 (1e30 for flops and bandwidth). Independent of the locale.
double parse_quantity(std::string_view text, Unit unit, std::string_view field);

/// The same, for quantities that must be whole, exactly up to 2^63 - 1: "1.5k" of a count is 1500, "1.0005k" is
/// refused. Bytes written with a suffix are rounded to the nearest byte, since "79.15GiB" is no whole number of them.
int64_t parse_integer(std::string_view text, Unit unit, std::string_view field);

/// What `unit` accepts, for error messages and help: "bytes such as 80GiB or 80GB".
std::string_view unit_help(Unit unit);

// Printing. Binary and decimal units never mix: GiB for memory a device holds, GB where a formula is decimal.
std::string with_commas(int64_t value);               ///< 10,737,418,240
std::string format_gib(Bytes bytes, int digits = 2);  ///< "61.20 GiB", smaller units below 0.1 GiB
std::string format_gb(double bytes, int digits = 1);  ///< "10.7 GB", with TB from 1e12 on, MB below 1e8
std::string format_count(double value);               ///< "70.55 B", "1.24 M", "950"
std::string format_seconds(double seconds);           ///< "69.2 days", "3.4 h", "219 ms"
std::string format_number(double value, int digits);  ///< fixed point, with commas, trailing zeros kept

}  // namespace vram
