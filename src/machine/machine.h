#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/environment.h"
#include "base/messages.h"
#include "base/units.h"
#include "catalog/constant.h"

namespace vram {

/// One link between neighbours. Rates are bytes a second, one direction.
struct Link {
  std::string kind;             ///< "NVLink4", "PCIe 5.0 x16", "InfiniBand NDR (assumed)"
  double bytes_per_second = 0;  ///< per device, per direction
  bool assumed = false;
};

/// One accelerator of the catalogue (data/devices.toml), or a bare amount of memory.
struct Device {
  std::string id;  ///< "h100-80-sxm5"
  std::string vendor;
  std::string name;  ///< "H100 80GB SXM5"
  std::string arch;  ///< "Hopper"
  std::string compute_capability;
  // The three totals: what the box says, what the driver reports, what a process sees (a range over drivers).
  Bytes marketing_bytes = 0;   ///< as sold: vendors of accelerators write GB and mean 2^30; a bare "80GB" is 80e9
  std::string marketing_text;  ///< "80 GB"
  std::optional<Bytes> driver_bytes;
  std::optional<Bytes> process_bytes_low, process_bytes_high;
  std::string memory_type;
  std::optional<double> bandwidth;  ///< bytes a second
  std::optional<Bytes> l2_bytes, smem_bytes_per_unit;
  std::optional<int64_t> compute_units;
  // Dense (never sparse) operations a second; absent where the device has none.
  std::optional<double> flops_fp32, flops_tf32, flops_bf16, flops_fp8, flops_fp4, flops_int8;
  std::optional<Link> scale_up;   ///< to the other cards of the node
  std::string host_link_text;     ///< "5x16", "C2C 450/dir", "SoC"
  std::optional<Link> host_link;  ///< nominal rate derived from host_link_text
  std::optional<double> watts;
  std::optional<double> rent_low, rent_high;  ///< USD per device-hour
  std::string source;
  std::vector<std::string> verified;
  std::string notes;
  bool memory_only = false;  ///< "80GB": no time answers

  std::vector<std::string> aliases;       ///< further spellings of this very device
  std::vector<std::string> short_names;   ///< spellings that leave board or size open and are taken as this device
  std::vector<std::string> driver_names;  ///< as NVML prints it; several devices may share one
  bool has_bf16 = true;                   ///< false: flops_bf16 is the fp16 rate only (Volta, Turing)
  bool unified_memory = false;            ///< host and device share one memory: no host link to cross
  int64_t scale_up_cards = 0;             ///< cards that one bridge joins; 0: the whole node
  int64_t cards_per_node = 8;             ///< in the usual node or pod
  int64_t per_package = 1;                ///< devices that a package shows to software; the row is one of them

  /// What a plan may count on: the low end of what a process sees, else the driver's total, else the marketing size.
  Bytes usable_bytes() const;
  /// Dense peak for matmuls of this dtype; bf16 and f16 share one figure. Absent: the device can't (bf16 on Volta and
  /// Turing), or is memory only, or its vendor states none.
  std::optional<double> flops(Dtype dtype) const;
};

/// A cluster of equal cards: nodes x cards_per_node devices.
struct Machine {
  Device device;
  int64_t nodes = 1;
  int64_t cards_per_node = 1;
  std::string text;                ///< as written: "16x8xH100"
  Link intra_node;                 ///< card to card inside a node
  std::optional<Link> inter_node;  ///< per card; absent for one node
  std::optional<Bytes> host_bytes_per_node;
  std::vector<std::string> assumptions;     ///< what was not said and was assumed, one clause each, in English
  std::vector<std::string> assumptions_zh;  ///< the same in Chinese

  int64_t cards() const { return nodes * cards_per_node; }
  const std::vector<std::string>& assumed(Lang lang) const { return lang == Lang::zh ? assumptions_zh : assumptions; }
};

/// What a name stands for. `left_open`: the name fits several boards or sizes and is taken as `device`.
struct DeviceMatch {
  const Device* device = nullptr;
  bool left_open = false;
};

class Devices {
 public:
  /// The rows that are compiled in (data/devices.toml), parsed at the first call. std::logic_error on a bad row.
  static const Devices& builtin();
  /// The user's own rows (TOML [[device]] tables in the form of data/devices.toml) override or add: a row whose id is
  /// known changes only the fields it names. InputError on a bad row or a name that two devices claim.
  Devices with_rows_of(std::string_view toml, const std::string& file) const;

  /// By id, name or alias, ignoring case, separators and the vendor's name ("H100", "RTX4090", "A100-80G"); null where
  /// unknown.
  const Device* find(std::string_view name) const { return match(name).device; }
  DeviceMatch match(std::string_view name) const;
  /// InputError with near misses where unknown.
  const Device& get(std::string_view name) const;
  /// The device that a driver names so, the one of nearest size where several are; null where unknown.
  const Device* find_driver_name(std::string_view name, Bytes driver_bytes) const;
  const std::vector<Device>& all() const { return rows_; }
  /// Every spelling that find() takes, as written in the rows; for near misses and completions.
  std::vector<std::string_view> names() const;

 private:
  void build_index(const std::string& file);

  struct Entry {
    std::string folded;
    size_t row;
    bool left_open;
  };
  std::vector<Device> rows_;
  std::vector<Entry> index_;  ///< sorted by folded name
};

/// The nominal link that "5x16" (PCIe generation and lanes) or "C2C 450/dir" (GB/s) stands for; absent for others.
std::optional<Link> host_link_of(std::string_view text, const Constants& constants);

/// "8xH100", "4xRTX4090", "16x8xH100-80G" (nodes x cards), "4x80GB" (memory only), "H100" (one card), "local" (this
/// machine's GPUs through `environment`), or the path of a machine file (.yaml, .json, .toml with device, nodes,
/// cards_per_node, intra_node, inter_node, host_memory, usable). InputError on anything else, on counts of zero or
/// beyond a million cards; UnavailableError where "local" finds no GPU or the file can't be read.
Machine parse_machine(std::string_view text, const Devices& devices, const Environment& environment,
                      const Constants& constants = Constants::builtin());

}  // namespace vram
