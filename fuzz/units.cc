#include <cmath>
#include <cstdint>

#include "base/units.h"
#include "check.h"

namespace vram {
namespace {

constexpr Unit kUnits[] = {Unit::none,  Unit::count, Unit::tokens,  Unit::bytes, Unit::bandwidth,
                           Unit::flops, Unit::ratio, Unit::seconds, Unit::money};

void try_unit(std::string_view text, Unit unit) {
  bool readable = false;
  double quantity = 0;
  try {
    quantity = parse_quantity(text, unit, "field");
    readable = true;
    fuzz::require(std::isfinite(quantity) && quantity >= 0 && quantity <= 1e30,
                  "a quantity is finite and not negative");
  } catch (const InputError& error) {
    fuzz::require_clean(error);
  }
  try {
    const int64_t whole = parse_integer(text, unit, "field");
    fuzz::require(whole >= 0, "a whole quantity is not negative");
    // Between 9.2e18 and 2^63 only the integer is taken.
    fuzz::require(readable || whole > 9'200'000'000'000'000'000, "a whole quantity is a quantity");
    const double same = static_cast<double>(whole);
    if (readable) fuzz::require(std::abs(same - quantity) <= 0.5 + 1e-15 * same, "both readings agree");
    fuzz::require(parse_integer(with_commas(whole), Unit::none, "field") == whole, "a printed integer reads back");
    format_gib(whole);
    format_count(same);
  } catch (const InputError& error) {
    fuzz::require_clean(error);
  }
}

}  // namespace
}  // namespace vram

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (vram::Unit unit : vram::kUnits) vram::try_unit(text, unit);
  return 0;
}
