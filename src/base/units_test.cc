#include "base/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "base/checked.h"
#include "base/error.h"

namespace vram {
namespace {

std::string refusal(std::string_view text, Unit unit, bool integer = false) {
  try {
    if (integer) {
      parse_integer(text, unit, "--x");
    } else {
      parse_quantity(text, unit, "--x");
    }
  } catch (const InputError& error) {
    return error.what();
  }
  return "(accepted)";
}

struct Whole {
  std::string_view text;
  Unit unit;
  int64_t expected;
};

TEST(Units, WholeQuantitiesAreExact) {
  const Whole cases[] = {
      {"0", Unit::none, 0},
      {"-0", Unit::none, 0},
      {"+5", Unit::none, 5},
      {" 42 ", Unit::none, 42},
      {"4096.0", Unit::none, 4096},
      {"1e3", Unit::none, 1000},
      {"1.5e3", Unit::none, 1500},
      {"12e-1e", Unit::none, -1},
      {"120e-1", Unit::none, 12},
      {"1,048,576", Unit::none, 1048576},
      {"1_048_576", Unit::none, 1048576},
      {"999,999", Unit::none, 999999},
      {"9007199254740993", Unit::none, 9007199254740993},
      {"9223372036854775807", Unit::none, 9223372036854775807},
      {"000000000000000000000000000012", Unit::none, 12},
      {"0e999999999999", Unit::none, 0},
      {"7B", Unit::count, 7'000'000'000},
      {"7b", Unit::count, 7'000'000'000},
      {"7e9", Unit::count, 7'000'000'000},
      {"1.1B", Unit::count, 1'100'000'000},
      {"1.5T", Unit::count, 1'500'000'000'000},
      {"350M", Unit::count, 350'000'000},
      {"350m", Unit::count, 350'000'000},
      {"1.5k", Unit::count, 1500},
      {"2K", Unit::count, 2000},
      {"3G", Unit::count, 3'000'000'000},
      {"3g", Unit::count, 3'000'000'000},
      {"2t", Unit::count, 2'000'000'000'000},
      {"1P", Unit::count, 1'000'000'000'000'000},
      {"70.553706496B", Unit::count, 70'553'706'496},
      {"4096", Unit::tokens, 4096},
      {"32k", Unit::tokens, 32768},
      {"32K", Unit::tokens, 32768},
      {"128k", Unit::tokens, 131072},
      {"1M", Unit::tokens, 1048576},
      {"1m", Unit::tokens, 1048576},
      {"1.5k", Unit::tokens, 1536},
      {"0.5k", Unit::tokens, 512},
      {"32,768", Unit::tokens, 32768},
      {"80GiB", Unit::bytes, 80 * kGiB},
      {"80GB", Unit::bytes, 80 * kGB},
      {"80 GiB", Unit::bytes, 80 * kGiB},
      {"80gb", Unit::bytes, 80 * kGB},
      {"80gib", Unit::bytes, 80 * kGiB},
      {"80GIB", Unit::bytes, 80 * kGiB},
      {"80Gi", Unit::bytes, 80 * kGiB},
      {"80G", Unit::bytes, 80 * kGB},
      {"512M", Unit::bytes, 512'000'000},
      {"512MB", Unit::bytes, 512'000'000},
      {"512mb", Unit::bytes, 512'000'000},
      {"512MiB", Unit::bytes, 512 * kMiB},
      {"512mib", Unit::bytes, 512 * kMiB},
      {"512MIB", Unit::bytes, 512 * kMiB},
      {"512Mi", Unit::bytes, 512 * kMiB},
      {"4KiB", Unit::bytes, 4096},
      {"4kiB", Unit::bytes, 4096},
      {"4kib", Unit::bytes, 4096},
      {"4KIB", Unit::bytes, 4096},
      {"4Ki", Unit::bytes, 4096},
      {"4kB", Unit::bytes, 4000},
      {"4KB", Unit::bytes, 4000},
      {"4kb", Unit::bytes, 4000},
      {"4k", Unit::bytes, 4000},
      {"4K", Unit::bytes, 4000},
      {"2TiB", Unit::bytes, 2048 * kGiB},
      {"2tib", Unit::bytes, 2048 * kGiB},
      {"2TIB", Unit::bytes, 2048 * kGiB},
      {"2Ti", Unit::bytes, 2048 * kGiB},
      {"2TB", Unit::bytes, 2'000 * kGB},
      {"2tb", Unit::bytes, 2'000 * kGB},
      {"2T", Unit::bytes, 2'000 * kGB},
      {"2PiB", Unit::bytes, 2048 * 1024 * kGiB},
      {"2pib", Unit::bytes, 2048 * 1024 * kGiB},
      {"2Pi", Unit::bytes, 2048 * 1024 * kGiB},
      {"2PB", Unit::bytes, 2'000'000 * kGB},
      {"2pb", Unit::bytes, 2'000'000 * kGB},
      {"2P", Unit::bytes, 2'000'000 * kGB},
      {"7B", Unit::bytes, 7},
      {"7 bytes", Unit::bytes, 7},
      {"1 byte", Unit::bytes, 1},
      {"85899345920", Unit::bytes, 80 * kGiB},
      // No whole number of bytes; meant to the digit it is written with.
      {"79.15GiB", Unit::bytes, 84'986'665'370},
      {"0.0000001kB", Unit::bytes, 0},
      {"400Gb/s", Unit::bandwidth, 50'000'000'000},
      {"312 TFLOPS", Unit::flops, 312'000'000'000'000},
  };
  for (const Whole& c : cases) {
    if (c.expected < 0) {
      EXPECT_NE(refusal(c.text, c.unit, true), "(accepted)") << c.text;
    } else {
      EXPECT_EQ(refusal(c.text, c.unit, true), "(accepted)");
      EXPECT_EQ(parse_integer(c.text, c.unit, "x"), c.expected) << c.text;
    }
  }
}

struct Real {
  std::string_view text;
  Unit unit;
  double expected;
};

TEST(Units, RealQuantitiesAreTheNearestDouble) {
  const Real cases[] = {
      {"45%", Unit::ratio, 0.45},
      {"35%", Unit::ratio, 0.35},
      {"0.35", Unit::ratio, 0.35},
      {"100 %", Unit::ratio, 1},
      {"12.5%", Unit::ratio, 0.125},
      {"1e-400", Unit::ratio, 0},
      {".5", Unit::none, 0.5},
      {"5.", Unit::none, 5},
      {"2.5", Unit::money, 2.5},
      {"1e18", Unit::none, 1e18},
      {"40s", Unit::seconds, 40},
      {"40", Unit::seconds, 40},
      {"40 sec", Unit::seconds, 40},
      {"40secs", Unit::seconds, 40},
      {"1 second", Unit::seconds, 1},
      {"40seconds", Unit::seconds, 40},
      {"219ms", Unit::seconds, 0.219},
      {"3us", Unit::seconds, 3e-6},
      {"3\xc2\xb5s", Unit::seconds, 3e-6},
      {"7ns", Unit::seconds, 7e-9},
      {"3m", Unit::seconds, 180},
      {"3min", Unit::seconds, 180},
      {"3mins", Unit::seconds, 180},
      {"1 minute", Unit::seconds, 60},
      {"3minutes", Unit::seconds, 180},
      {"1.5h", Unit::seconds, 5400},
      {"2hr", Unit::seconds, 7200},
      {"1hour", Unit::seconds, 3600},
      {"2 hours", Unit::seconds, 7200},
      {"2d", Unit::seconds, 172800},
      {"1day", Unit::seconds, 86400},
      {"69.2 days", Unit::seconds, 69.2 * 86400},
      {"64GB/s", Unit::bandwidth, 64e9},
      {"2TB/s", Unit::bandwidth, 2e12},
      {"1PB/s", Unit::bandwidth, 1e15},
      {"5MB/s", Unit::bandwidth, 5e6},
      {"5kB/s", Unit::bandwidth, 5e3},
      {"5KB/s", Unit::bandwidth, 5e3},
      {"5B/s", Unit::bandwidth, 5},
      {"50GiB/s", Unit::bandwidth, 50.0 * kGiB},
      {"5KiB/s", Unit::bandwidth, 5 * 1024},
      {"5MiB/s", Unit::bandwidth, 5.0 * kMiB},
      {"1TiB/s", Unit::bandwidth, 1024.0 * kGiB},
      {"5kBps", Unit::bandwidth, 5e3},
      {"5KBps", Unit::bandwidth, 5e3},
      {"5MBps", Unit::bandwidth, 5e6},
      {"5GBps", Unit::bandwidth, 5e9},
      {"5TBps", Unit::bandwidth, 5e12},
      {"400Gb/s", Unit::bandwidth, 50e9},
      {"400 Gbit/s", Unit::bandwidth, 50e9},
      {"400Gbps", Unit::bandwidth, 50e9},
      {"400gbps", Unit::bandwidth, 50e9},
      {"1.6Tb/s", Unit::bandwidth, 200e9},
      {"1.6Tbit/s", Unit::bandwidth, 200e9},
      {"1.6Tbps", Unit::bandwidth, 200e9},
      {"1.6tbps", Unit::bandwidth, 200e9},
      {"100Mb/s", Unit::bandwidth, 12.5e6},
      {"100Mbit/s", Unit::bandwidth, 12.5e6},
      {"100Mbps", Unit::bandwidth, 12.5e6},
      {"100mbps", Unit::bandwidth, 12.5e6},
      {"8kb/s", Unit::bandwidth, 1e3},
      {"8Kb/s", Unit::bandwidth, 1e3},
      {"8kbit/s", Unit::bandwidth, 1e3},
      {"8Kbit/s", Unit::bandwidth, 1e3},
      {"8kbps", Unit::bandwidth, 1e3},
      {"8Kbps", Unit::bandwidth, 1e3},
      {"8b/s", Unit::bandwidth, 1},
      {"8bit/s", Unit::bandwidth, 1},
      {"1bps", Unit::bandwidth, 0.125},
      {"312 TFLOPS", Unit::flops, 312e12},
      {"312TFLOP/s", Unit::flops, 312e12},
      {"312TFLOPs", Unit::flops, 312e12},
      {"312tflops", Unit::flops, 312e12},
      {"312Tflops", Unit::flops, 312e12},
      {"312T", Unit::flops, 312e12},
      {"0.989 PFLOPS", Unit::flops, 0.989e15},
      {"1 EFLOPS", Unit::flops, 1e18},
      {"2E", Unit::flops, 2e18},
      {"500 GFLOPS", Unit::flops, 500e9},
      {"5 MFLOPS", Unit::flops, 5e6},
      {"5 kFLOPS", Unit::flops, 5e3},
      {"312e12", Unit::flops, 312e12},
      {"5 FLOPS", Unit::flops, 5},
      {"1979 TOPS", Unit::flops, 1979e12},
      {"1e30", Unit::flops, 1e30},
  };
  for (const Real& c : cases) {
    EXPECT_EQ(refusal(c.text, c.unit), "(accepted)");
    EXPECT_EQ(parse_quantity(c.text, c.unit, "x"), c.expected) << c.text;
  }
}

struct Refused {
  std::string_view text;
  Unit unit;
  std::string_view expected;
};

TEST(Units, RefusesWithOneLine) {
  const Refused cases[] = {
      {"", Unit::none, "--x is empty; accepted: a number"},
      {"  ", Unit::none, "--x '  ' is empty; accepted: a number"},
      {"-1", Unit::none, "--x '-1' must not be negative; accepted: a number"},
      {"-5%", Unit::ratio, "--x '-5%' must not be negative; accepted: a share such as 45% or 0.45"},
      {"nan", Unit::none, "--x 'nan' is not a number; accepted: a number"},
      {"inf", Unit::none, "--x 'inf' is not a number; accepted: a number"},
      {"-inf", Unit::none, "--x '-inf' is not a number; accepted: a number"},
      {"0x10", Unit::none, "--x '0x10' is not a number; accepted: a number"},
      {"+0x10", Unit::none, "--x '+0x10' is not a number; accepted: a number"},
      {"1.5.2", Unit::none, "--x '1.5.2' is not a number; accepted: a number"},
      {"1.234,5", Unit::none, "--x '1.234,5' is not a number; accepted: a number"},
      {"--1", Unit::none, "--x '--1' is not a number; accepted: a number"},
      {"+ 1", Unit::none, "--x '+ 1' is not a number; accepted: a number"},
      {".", Unit::none, "--x '.' is not a number; accepted: a number"},
      {"e5", Unit::none, "--x 'e5' is not a number; accepted: a number"},
      {"GB", Unit::bytes, "--x 'GB' is not a number; accepted: bytes such as 80GiB, 80GB or 512MiB"},
      {"1,5", Unit::none, "--x '1,5' has commas that do not group thousands; accepted: a number"},
      {"1,5GB", Unit::bytes,
       "--x '1,5GB' has commas that do not group thousands; accepted: bytes such as 80GiB, 80GB or 512MiB"},
      {"1,0000", Unit::none, "--x '1,0000' has commas that do not group thousands; accepted: a number"},
      {"1234,567", Unit::none, "--x '1234,567' has commas that do not group thousands; accepted: a number"},
      {"1,", Unit::none, "--x '1,' has an unknown unit ','; accepted: a number"},
      {"1e", Unit::none, "--x '1e' has an unknown unit 'e'; accepted: a number"},
      {"5k", Unit::none, "--x '5k' has an unknown unit 'k'; accepted: a number"},
      {"1 000", Unit::none, "--x '1 000' has an unknown unit '000'; accepted: a number"},
      {"1000000000000000000000000000000", Unit::none,
       "--x '1000000000000000000000000000000' is too large; accepted: a number"},
      {"1e30", Unit::count, "--x '1e30' is too large; accepted: a count such as 7e9, 7B, 350M or 1.5T"},
      {"1e400", Unit::flops, "--x '1e400' is too large; accepted: operations a second such as 312 TFLOPS"},
      {"1e99999999999999999999", Unit::none, "--x '1e99999999999999999999' is too large; accepted: a number"},
      {"1e31", Unit::flops, "--x '1e31' is too large; accepted: operations a second such as 312 TFLOPS"},
      {"80Gb", Unit::bytes,
       "--x '80Gb' is in bits; memory is counted in bytes; accepted: bytes such as 80GiB, 80GB or 512MiB"},
      {"80Gbit", Unit::bytes,
       "--x '80Gbit' is in bits; memory is counted in bytes; accepted: bytes such as 80GiB, 80GB or 512MiB"},
      {"80GB/s", Unit::bytes, "--x '80GB/s' is a rate, not an amount; accepted: bytes such as 80GiB, 80GB or 512MiB"},
      {"80GX", Unit::bytes, "--x '80GX' has an unknown unit 'GX'; accepted: bytes such as 80GiB, 80GB or 512MiB"},
      {"64", Unit::bandwidth, "--x '64' lacks a unit; accepted: a rate such as 64GB/s or 400Gb/s (bits)"},
      {"64GB", Unit::bandwidth,
       "--x '64GB' is an amount, not a rate; accepted: a rate such as 64GB/s or 400Gb/s (bits)"},
      {"400Gb", Unit::bandwidth,
       "--x '400Gb' is an amount, not a rate; accepted: a rate such as 64GB/s or 400Gb/s (bits)"},
      {"400gb/s", Unit::bandwidth,
       "--x '400gb/s' does not say whether b is bits (Gb/s) or bytes (GB/s); accepted: a rate such as 64GB/s or "
       "400Gb/s (bits)"},
      {"32kB", Unit::tokens, "--x '32kB' has an unknown unit 'kB'; accepted: tokens such as 4096 or 32k (32 x 1024)"},
      {"1\n2", Unit::none, "--x '1?2' has an unknown unit '?2'; accepted: a number"},
      {std::string_view("5\0abc", 5), Unit::none, "--x '5?abc' has an unknown unit '?abc'; accepted: a number"},
      {"\xff", Unit::none, "--x '?' is not a number; accepted: a number"},
      {"1111111111111111111111111111111111111111111111111111111111111111111111", Unit::none,
       "--x '111111111111111111111111111111111111111111111111111111111111...' is too long for a number; accepted: a "
       "number"},
  };
  for (const Refused& c : cases) EXPECT_EQ(refusal(c.text, c.unit), c.expected);
}

TEST(Units, RefusesFractionsWhereWholeNumbersAreMeant) {
  EXPECT_EQ(refusal("1.5", Unit::none, true), "--x '1.5' is not a whole number; accepted: a number");
  EXPECT_EQ(refusal("1.0005k", Unit::count, true),
            "--x '1.0005k' is not a whole number; accepted: a count such as 7e9, 7B, 350M or 1.5T");
  EXPECT_EQ(refusal("0.3k", Unit::tokens, true),
            "--x '0.3k' is not a whole number; accepted: tokens such as 4096 or 32k (32 x 1024)");
  // Half of one in a billion is still a half.
  EXPECT_EQ(refusal("1000000000.5", Unit::count, true),
            "--x '1000000000.5' is not a whole number; accepted: a count such as 7e9, 7B, 350M or 1.5T");
  EXPECT_EQ(refusal("1.5B", Unit::bytes, true),
            "--x '1.5B' is not a whole number; accepted: bytes such as 80GiB, 80GB or 512MiB");
  EXPECT_EQ(refusal("0.1234567890123456789012345678", Unit::none, true),
            "--x '0.1234567890123456789012345678' is not a whole number; accepted: a number");
}

TEST(Units, HoldsTheEndOfInt64) {
  EXPECT_EQ(parse_integer("9223372036854775807", Unit::bytes, "x"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(refusal("9223372036854775808", Unit::none, true),
            "--x '9223372036854775808' is too large; accepted: a number");
  EXPECT_EQ(refusal("8192PiB", Unit::bytes, true),
            "--x '8192PiB' is too large; accepted: bytes such as 80GiB, 80GB or 512MiB");
  EXPECT_EQ(parse_integer("8191PiB", Unit::bytes, "x"), 8191 * kGiB * kMiB);
  EXPECT_EQ(refusal("1e20", Unit::flops, true),
            "--x '1e20' is too large; accepted: operations a second such as 312 TFLOPS");
  EXPECT_EQ(refusal("123456789012345678901234567890", Unit::none, true),
            "--x '123456789012345678901234567890' is too large; accepted: a number");
}

RC_GTEST_PROP(Units, EveryIntegerReadsBack, ()) {
  const int64_t value = *rc::gen::suchThat(rc::gen::arbitrary<int64_t>(), [](int64_t v) { return v >= 0; });
  const int shift = *rc::gen::inRange(0, 62);
  const int64_t n = value >> shift;
  RC_ASSERT(parse_integer(std::to_string(n), Unit::bytes, "x") == n);
  RC_ASSERT(parse_integer(with_commas(n), Unit::count, "x") == n);
  const int64_t small = n % (int64_t{1} << 22);
  RC_ASSERT(parse_integer(std::to_string(small) + "GiB", Unit::bytes, "x") == small * kGiB);
  RC_ASSERT(parse_integer(std::to_string(small) + "B", Unit::count, "x") == small * 1'000'000'000);
}

TEST(Format, Numbers) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(10'737'418'240), "10,737,418,240");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(with_commas(-999), "-999");
  EXPECT_EQ(with_commas(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(format_number(1234567.891, 2), "1,234,567.89");
  EXPECT_EQ(format_number(0.5, 0), "0");
  EXPECT_EQ(format_number(-1234.5, 1), "-1,234.5");
  EXPECT_EQ(format_number(-0.04, 1), "0.0");
  EXPECT_EQ(format_number(std::numeric_limits<double>::infinity(), 1), "inf");
  EXPECT_EQ(format_number(-std::numeric_limits<double>::infinity(), 1), "-inf");
}

TEST(Format, Memory) {
  EXPECT_EQ(format_gib(0), "0 GiB");
  EXPECT_EQ(format_gib(80 * kGiB), "80.00 GiB");
  EXPECT_EQ(format_gib(80 * kGB), "74.51 GiB");
  EXPECT_EQ(format_gib(80 * kGB, 1), "74.5 GiB");
  EXPECT_EQ(format_gib(2048 * kGiB), "2,048.00 GiB");
  EXPECT_EQ(format_gib(64 * kMiB), "64.0 MiB");
  EXPECT_EQ(format_gib(64 * kMiB, 0), "64 MiB");
  EXPECT_EQ(format_gib(10 * kKiB), "10.0 KiB");
  EXPECT_EQ(format_gib(1023), "1,023 B");
  EXPECT_EQ(format_gib(-80 * kGiB), "-80.00 GiB");
  EXPECT_EQ(format_gb(14e9), "14.0 GB");
  EXPECT_EQ(format_gb(2.8e12), "2.8 TB");
  EXPECT_EQ(format_gb(4e13, 0), "40 TB");
  EXPECT_EQ(format_gb(10'737'418'240.0, 2), "10.74 GB");
  EXPECT_EQ(format_gb(5e7), "50.0 MB");
  EXPECT_EQ(format_gb(5e3), "5.0 kB");
  EXPECT_EQ(format_gb(524288), "0.5 MB");
  EXPECT_EQ(format_gb(17), "17 B");
  EXPECT_EQ(format_gb(3e15), "3.0 PB");
  // Rounding never shows a thousand of one unit where the next one begins.
  EXPECT_EQ(format_gb(9.9997e11), "1.0 TB");
  EXPECT_EQ(format_gb(9.99e11), "999.0 GB");
}

TEST(Format, Counts) {
  EXPECT_EQ(format_count(70'553'706'496.0), "70.55 B");
  EXPECT_EQ(format_count(1'235'814'400.0), "1.24 B");
  EXPECT_EQ(format_count(1.5e12), "1.50 T");
  EXPECT_EQ(format_count(1240000), "1.24 M");
  EXPECT_EQ(format_count(1500), "1.5 k");
  EXPECT_EQ(format_count(950), "950");
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999'999), "1.00 M");
  EXPECT_EQ(format_count(999.9), "1.0 k");
  EXPECT_EQ(format_count(999'996'000), "1.00 B");
  EXPECT_EQ(format_count(8.4e23), "8.4e+23");
}

TEST(Format, Seconds) {
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(69.2 * 86400), "69.2 days");
  EXPECT_EQ(format_seconds(86400), "24.0 h");
  EXPECT_EQ(format_seconds(12240), "3.4 h");
  EXPECT_EQ(format_seconds(1800), "30.0 min");
  EXPECT_EQ(format_seconds(40), "40.00 s");
  EXPECT_EQ(format_seconds(0.219), "219 ms");
  EXPECT_EQ(format_seconds(0.0437), "43.70 ms");
  EXPECT_EQ(format_seconds(0.9996), "1.00 s");
  EXPECT_EQ(format_seconds(119.999), "2.0 min");
  EXPECT_EQ(format_seconds(5e-6), "5.0 us");
  EXPECT_EQ(format_seconds(-3), "-3.00 s");
  EXPECT_EQ(format_seconds(std::numeric_limits<double>::infinity()), "never");
  EXPECT_EQ(format_seconds(std::nan("")), "unknown");
}

TEST(Checked, OverflowThrows) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(checked_mul(1 << 20, int64_t{1} << 40), int64_t{1} << 60);
  EXPECT_THROW(checked_mul(int64_t{1} << 40, int64_t{1} << 40), OverflowError);
  EXPECT_EQ(checked_add(most, 0), most);
  EXPECT_THROW(checked_add(most, 1), OverflowError);
  EXPECT_EQ(ceil_div(7, 2), 4);
  EXPECT_EQ(ceil_div(8, 2), 4);
  EXPECT_EQ(ceil_div(0, 5), 0);
  EXPECT_EQ(ceil_div(most, 2), int64_t{1} << 62);
  EXPECT_EQ(round_up(513, 512), 1024);
}

}  // namespace
}  // namespace vram
