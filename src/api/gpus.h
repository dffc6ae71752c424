#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/environment.h"
#include "machine/machine.h"

namespace vram {

/// What do you know about accelerators? With `compare`, those side by side; else with `words` that name one device,
/// that device in full; else the devices that hold every word in name, vendor or architecture; without words, all.
struct GpusRequest {
  std::vector<std::string> words;
  std::vector<std::string> compare;  ///< two to eight names
};

/// Dense peak of one number format, and the operations a byte of device memory traffic at which it is reached.
struct DtypeRate {
  Dtype dtype = Dtype::bf16;
  double flops_per_second = 0;
  std::optional<double> ridge_flops_per_byte;
};

/// One level of the memory pyramid as one device sees it, fastest first.
struct MemoryLevel {
  std::string name;                        ///< "registers", "shared", "l2", "device", "scale_up", "host_link"
  std::optional<Bytes> bytes;              ///< of all units together; absent for links
  std::optional<double> bytes_per_second;  ///< specified, or measured where `basis` says so
  std::optional<double> measured_low, measured_high;
  Basis basis = Basis::exact;
  std::string detail;          ///< "132 x 228 KiB", "HBM3", "NVLink4"
  std::optional<double> step;  ///< times slower than the next faster memory whose rate is known
};

struct GpuFacts {
  Device device;
  bool left_open = false;  ///< the name that was asked for fits other boards or sizes, too
  std::vector<DtypeRate> rates;
  std::vector<MemoryLevel> levels;
};

/// One line of a comparison; ratios are to the first device.
struct ComparisonLine {
  std::string what;  ///< JSON key: "memory_bytes", "bf16_flops_per_second"
  std::vector<std::optional<double>> values;
  std::vector<std::optional<double>> ratios;
};

/// One GPU of this machine and the catalogue's device for it.
struct LocalFacts {
  LocalGpu gpu;
  std::string device_id;  ///< empty where the catalogue doesn't know it
};

struct GpusAnswer {
  enum class Kind : uint8_t { list, one, comparison };
  Kind kind = Kind::list;
  std::vector<std::string> words;
  std::vector<GpuFacts> devices;
  std::vector<ComparisonLine> comparison;
  int64_t known = 0;         ///< devices in the catalogue
  bool asked_local = false;  ///< only a list without words asks the driver
  std::vector<LocalFacts> local;
  std::string local_absent_because;
};

/// InputError for names and words that nothing matches (with near misses), and for fewer than two devices to compare.
GpusAnswer gpus(const GpusRequest& request, const Environment& environment, const Devices& devices = Devices::builtin(),
                const Constants& constants = Constants::builtin());

Document to_json(const GpusAnswer& answer);

}  // namespace vram
