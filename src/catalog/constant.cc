#include "catalog/constant.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/embedded.h"
#include "base/error.h"
#include "formats/formats.h"

namespace vram::embedded {
extern const File constants[];
}

namespace vram {
namespace {

constexpr std::string_view kUnits[] = {
    "bytes", "count", "elements", "tokens", "bits", "permille", "bytes_per_second", "bytes_per_parameter", "seconds"};
constexpr std::string_view kKeys[] = {"id",    "value",  "low",   "high",  "unit",
                                      "basis", "source", "since", "until", "notes"};

bool less_id(const Constant& a, std::string_view id) { return a.id < id; }

std::string unit_list() {
  std::string out;
  for (std::string_view unit : kUnits) out += (out.empty() ? "" : ", ") + std::string(unit);
  return out;
}

void refuse_unknown_keys(const Fields& row) {
  for (const std::string& name : row.unused()) {
    const std::string near = near_miss(name, {std::begin(kKeys), std::end(kKeys)});
    throw InputError({.file = row.file(),
                      .line = row.document().line(),
                      .field = name,
                      .problem = "is no field of a constant",
                      .near_miss = near});
  }
}

bool is_id(std::string_view id) {
  return !id.empty() && id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == std::string_view::npos;
}

/// One [[constant]] table. `over` holds the rows it may replace, or is null; `complete` asks for every field.
Constant read_row(const Document& document, const std::string& file, const Constants* over, bool complete) {
  const Fields row(document, file);
  constexpr Range any{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  Constant c;
  c.id = row.required_string({"id"});
  if (!is_id(c.id)) row.refuse("id", "is no name", "lower-case letters, digits, _ and .");
  const Constant* known = over ? over->find(c.id) : nullptr;
  c.value = row.required_integer({"value"}, any);
  c.low = complete ? row.required_integer({"low"}, any) : row.integer_or({"low"}, c.value, any);
  c.high = complete ? row.required_integer({"high"}, any) : row.integer_or({"high"}, c.value, any);
  c.unit = complete || !known ? row.required_string({"unit"}) : row.string_or({"unit"}, known->unit);
  if (std::find(std::begin(kUnits), std::end(kUnits), c.unit) == std::end(kUnits)) {
    row.refuse("unit", "is unknown", unit_list());
  }
  if (known && known->unit != c.unit) row.refuse("unit", "differs from the built-in row's", known->unit);
  const std::string basis = complete ? row.required_string({"basis"}) : row.string_or({"basis"}, "assumed");
  const std::optional<Basis> parsed = parse_basis(basis);
  if (!parsed) row.refuse("basis", "is unknown", "exact, measured, assumed");
  c.basis = *parsed;
  c.source = complete ? row.required_string({"source"}) : row.string_or({"source"}, file);
  if (c.source.empty()) row.refuse("source", "is empty", "where the number is from");
  c.since = row.string_or({"since"}, "");
  c.until = row.string_or({"until"}, "");
  c.notes = row.string_or({"notes"}, "");
  if (c.value < c.low || c.value > c.high) row.refuse("value", "lies outside low and high", "low <= value <= high");
  if (c.basis == Basis::exact && c.low != c.high) row.refuse("basis", "is exact but low and high differ");
  refuse_unknown_keys(row);
  return c;
}

std::vector<Constant> read_rows(std::string_view toml, const std::string& file, const Constants* over, bool complete) {
  const Document document = parse_toml(toml, file);
  const Fields top(document, file);
  const Document* list = top.find({"constant"});
  if (!list || !list->is_array()) top.refuse("constant", "is missing", "[[constant]] tables");
  std::vector<Constant> rows;
  rows.reserve(list->array().size());
  for (const Document& item : list->array()) rows.push_back(read_row(item, file, over, complete));
  if (!top.unused().empty()) {
    throw InputError(
        {.file = file, .field = top.unused().front(), .problem = "is unknown", .accepted = "[[constant]]"});
  }
  std::sort(rows.begin(), rows.end(), [](const Constant& a, const Constant& b) { return a.id < b.id; });
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].id == rows[i - 1].id) {
      throw InputError({.file = file, .field = "id", .value = rows[i].id, .problem = "appears twice"});
    }
  }
  return rows;
}

}  // namespace

std::string_view basis_name(Basis basis) {
  switch (basis) {
    case Basis::exact:
      return "exact";
    case Basis::measured:
      return "measured";
    case Basis::assumed:
      return "assumed";
  }
  return {};
}

std::optional<Basis> parse_basis(std::string_view name) {
  for (Basis basis : {Basis::exact, Basis::measured, Basis::assumed}) {
    if (name == basis_name(basis)) return basis;
  }
  return std::nullopt;
}

const Constants& Constants::builtin() {
  static const Constants loaded = [] {
    Constants out;
    try {
      out.rows_ = read_rows(embedded::constants[0].bytes, "constants.toml", nullptr, true);
    } catch (const InputError& error) {
      throw std::logic_error(error.what());
    }
    return out;
  }();
  return loaded;
}

Constants Constants::with_rows_of(std::string_view toml, const std::string& file) const {
  std::vector<Constant> mine = read_rows(toml, file, this, false);
  Constants out;
  out.rows_.reserve(rows_.size() + mine.size());
  size_t i = 0;
  for (Constant& row : mine) {
    while (i < rows_.size() && rows_[i].id < row.id) out.rows_.push_back(rows_[i++]);
    if (i < rows_.size() && rows_[i].id == row.id) ++i;
    out.rows_.push_back(std::move(row));
  }
  out.rows_.insert(out.rows_.end(), rows_.begin() + static_cast<std::ptrdiff_t>(i), rows_.end());
  return out;
}

const Constant* Constants::find(std::string_view id) const {
  const auto at = std::lower_bound(rows_.begin(), rows_.end(), id, less_id);
  return at != rows_.end() && at->id == id ? &*at : nullptr;
}

const Constant& Constants::get(std::string_view id) const {
  if (const Constant* row = find(id)) return *row;
  throw std::logic_error("no constant '" + std::string(id) + "'");
}

const Constant& Constants::get_or_default(std::string_view prefix, std::string_view key) const {
  std::string id(prefix);
  id += '.';
  for (char c : key) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    id += c == ' ' || c == '-' ? '_' : c;
  }
  if (const Constant* row = find(id)) return *row;
  return get(std::string(prefix) + ".default");
}

}  // namespace vram
