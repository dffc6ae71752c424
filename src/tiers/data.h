#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "catalog/constant.h"

namespace vram {

/// A rate in bytes a second, with the range that is left open.
struct Span {
  double value = 0, low = 0, high = 0;
};

/// What one compute unit (SM, CU) has on chip.
struct Core {
  std::string id;
  std::vector<std::string> capabilities;  ///< as Device::compute_capability
  Bytes register_bytes = 0;
  int64_t fp32_fma_per_clock = 0;
  int64_t shared_bytes_per_clock = 0;
  Basis basis = Basis::exact;
  std::string source;
};

/// Somebody's measurement of a level of some devices.
struct Measured {
  std::string level;
  std::vector<std::string> devices;  ///< ids
  bool per_node = false;             ///< of all cards of a node together
  Span rate;
  std::string what;  ///< how it was measured
  Basis basis = Basis::measured;
  std::string source;
};

/// NVMe of one node.
struct Disk {
  std::string id, name;
  Bytes bytes = 0;
  Span read, write;
  Basis basis = Basis::measured;
  std::string source;
};

/// Shared storage. Rates of the whole, or of one node where `per_client`.
struct Store {
  std::string id, name;
  std::vector<std::string> aliases;
  std::string kind;
  bool per_client = false;
  Span read, write;
  Basis basis = Basis::measured;
  std::string source, notes;
};

/// The rows of data/tiers.toml, with the user's own laid over them. Immutable once loaded.
class TierRows {
 public:
  /// The rows that are compiled in, parsed at the first call. std::logic_error on a bad row (a test holds that).
  static const TierRows& builtin();
  /// [[disk]] and [[store]] tables replace rows of the same id or add some. Only id, read_gb and write_gb are needed.
  /// InputError on a bad row.
  TierRows with_rows_of(std::string_view toml, const std::string& file) const;

  const Core* core(std::string_view capability) const;
  const Measured* measured(std::string_view level, std::string_view device) const;
  /// By id, name or alias, ignoring case and separators; InputError with near misses where unknown.
  const Store& store(std::string_view name, std::string_view field) const;
  const Disk* disk(std::string_view id) const;
  /// The node's NVMe that is assumed of a device: what hosts of its link generation are measured with.
  const Disk& usual_disk(std::string_view host_link) const;

  const std::vector<Core>& cores() const { return cores_; }
  const std::vector<Measured>& all_measured() const { return measured_; }
  const std::vector<Disk>& disks() const { return disks_; }
  const std::vector<Store>& stores() const { return stores_; }

 private:
  std::vector<Core> cores_;
  std::vector<Measured> measured_;
  std::vector<Disk> disks_;
  std::vector<Store> stores_;
};

}  // namespace vram
