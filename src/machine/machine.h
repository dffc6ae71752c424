#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/environment.h"
#include "base/units.h"

namespace vram {

/// One link between neighbours. Rates are bytes a second, one direction.
struct Link {
  std::string kind;              ///< "NVLink4", "PCIe 5.0 x16", "InfiniBand NDR (assumed)"
  double bytes_per_second = 0;   ///< per device, per direction
  bool assumed = false;
};

/// One accelerator of the catalogue (data/devices.toml), or a bare amount of memory.
struct Device {
  std::string id;                ///< "h100-80-sxm5"
  std::string vendor;
  std::string name;              ///< "H100 80GB SXM5"
  std::string arch;              ///< "Hopper"
  std::string compute_capability;
  // The three totals: what the box says, what the driver reports, what a process sees (a range over drivers).
  Bytes marketing_bytes = 0;     ///< "80GB" as sold, in units of 2^30 or 1e9 as the vendor means it; see marketing_text
  std::string marketing_text;    ///< "80 GB"
  std::optional<Bytes> driver_bytes;
  std::optional<Bytes> process_bytes_low, process_bytes_high;
  std::string memory_type;
  std::optional<double> bandwidth;          ///< bytes a second
  std::optional<Bytes> l2_bytes, smem_bytes_per_unit;
  std::optional<int64_t> compute_units;
  // Dense (never sparse) operations a second; absent where the device has none.
  std::optional<double> flops_fp32, flops_tf32, flops_bf16, flops_fp8, flops_fp4, flops_int8;
  std::optional<Link> scale_up;             ///< to the other cards of the node
  std::string host_link_text;               ///< "5x16", "C2C 450/dir", "SoC"
  std::optional<Link> host_link;            ///< nominal rate derived from host_link_text
  std::optional<double> watts;
  std::optional<double> rent_low, rent_high;  ///< USD per device-hour
  std::string source;
  std::vector<std::string> verified;
  std::string notes;
  bool memory_only = false;                 ///< "80GB": no time answers

  /// What a plan may count on: the low end of what a process sees, else the driver's total, else the marketing size.
  Bytes usable_bytes() const;
  /// Dense peak for matmuls of this dtype; bf16 and f16 share one figure. Absent: the device can't, or is memory only.
  std::optional<double> flops(Dtype dtype) const;
};

/// A cluster of equal cards: nodes x cards_per_node devices.
struct Machine {
  Device device;
  int64_t nodes = 1;
  int64_t cards_per_node = 1;
  std::string text;                         ///< as written: "16x8xH100"
  Link intra_node;                          ///< card to card inside a node
  std::optional<Link> inter_node;           ///< per card; absent for one node
  std::optional<Bytes> host_bytes_per_node;
  std::vector<std::string> assumptions;     ///< what was not said and was assumed, one clause each

  int64_t cards() const { return nodes * cards_per_node; }
};

class Devices {
 public:
  static const Devices& builtin();
  /// The user's own rows (TOML [[device]] tables in the form of data/devices.toml) override or add.
  Devices with_rows_of(std::string_view toml, const std::string& file) const;

  /// By id, name or alias, ignoring case and separators ("H100", "RTX4090", "A100-80G"); null where unknown.
  const Device* find(std::string_view name) const;
  /// InputError with near misses where unknown.
  const Device& get(std::string_view name) const;
  const std::vector<Device>& all() const { return rows_; }

 private:
  std::vector<Device> rows_;
};

/// "8xH100", "4xRTX4090", "16x8xH100-80G" (nodes x cards), "4x80GB" (memory only), "H100" (one card), "local" (this
/// machine's GPUs through `environment`). InputError on anything else, on counts of zero or beyond a million cards.
Machine parse_machine(std::string_view text, const Devices& devices, const Environment& environment);

}  // namespace vram
