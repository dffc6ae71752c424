#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace vram {

/// What NVML says about one GPU of this machine.
struct LocalGpu {
  std::string name;                 ///< "NVIDIA H100 80GB HBM3"
  int64_t total_bytes = 0;
  int64_t used_bytes = 0;
  int64_t free_bytes = 0;
  std::string driver;
};

/// What was found when this machine's GPUs were asked for: GPUs, or the reason why there are none.
struct LocalGpus {
  std::vector<LocalGpu> gpus;
  std::string absent_because;       ///< empty where GPUs were found
};

/// The only way to the operating system for rooms above host/. host/ implements it; tests and the web use others.
class Environment {
 public:
  virtual ~Environment() = default;
  /// The file's bytes. UnavailableError where it can't be read, InputError where it exceeds `limit`.
  virtual std::string read_file(const std::string& path, size_t limit) const = 0;
  virtual bool is_file(const std::string& path) const = 0;
  virtual bool is_directory(const std::string& path) const = 0;
  /// Plain names in a directory, sorted; empty where it can't be read.
  virtual std::vector<std::string> list(const std::string& path) const = 0;
  /// Writes a temporary file beside `path`, then renames it. UnavailableError where that fails; nothing half-written.
  virtual void write_file(const std::string& path, const std::string& bytes) const = 0;
  virtual std::optional<std::string> variable(const std::string& name) const = 0;
  virtual LocalGpus local_gpus() const = 0;
};

}  // namespace vram
