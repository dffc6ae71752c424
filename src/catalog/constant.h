#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vram {

/// How sure a number is: by arithmetic or specification, measured by somebody, or assumed.
enum class Basis : uint8_t { exact, measured, assumed };

std::string_view basis_name(Basis basis);
std::optional<Basis> parse_basis(std::string_view name);

/// One number that is not arithmetic: a data row (data/constants.toml), with the range it may take and where it is
/// from.
struct Constant {
  std::string id;  ///< "cuda_context_bytes.hopper"
  int64_t value = 0;
  int64_t low = 0;
  int64_t high = 0;
  Basis basis = Basis::assumed;
  std::string unit;  ///< "bytes", "count", "permille"
  std::string source;
  std::string since;  ///< first version for which it holds, or empty
  std::string until;  ///< first version for which it holds no longer, or empty
  std::string notes;
};

/// The constants of data/constants.toml, with the user's own rows laid over them. Immutable once loaded.
class Constants {
 public:
  /// The rows that are compiled in, parsed at the first call. Throws std::logic_error if a row lacks source, basis or
  /// order (a test holds that).
  static const Constants& builtin();
  /// Rows of `toml` replace those of the same id; unknown ids are added. A user's row needs only id and value: low and
  /// high default to the value, basis to "assumed", source to the file's name. InputError on a bad row.
  Constants with_rows_of(std::string_view toml, const std::string& file) const;

  /// The row `id`; std::logic_error if there is none.
  const Constant& get(std::string_view id) const;
  /// The row `id`, or null.
  const Constant* find(std::string_view id) const;
  /// The row `prefix.key`, else `prefix.default`. Keys are folded as rows spell them: "Blackwell Ultra" is
  /// "blackwell_ultra".
  const Constant& get_or_default(std::string_view prefix, std::string_view key) const;
  /// Sorted by id.
  const std::vector<Constant>& all() const { return rows_; }

 private:
  std::vector<Constant> rows_;
};

}  // namespace vram
