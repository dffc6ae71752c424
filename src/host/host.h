#pragma once

#include <string>

#include "base/environment.h"

namespace vram {

/// The operating system: files, environment variables, and the NVIDIA driver through NVML.
///
/// Files must be regular ones, and are read whole or in parts. Writing goes to a temporary file beside the target,
/// which is synced and renamed over it, so that a reader sees the old bytes or the new ones; a symbolic link stays a
/// link and its target keeps its permissions; nothing is left behind on failure.
class HostEnvironment : public Environment {
 public:
  /// `nvml_library` is loaded at the first question for GPUs. Empty: the variable VRAM_NVML_LIBRARY, else the name
  /// under which drivers install it.
  explicit HostEnvironment(std::string nvml_library = {}) : nvml_library_(std::move(nvml_library)) {}

  std::string read_file(const std::string& path, size_t limit) const override;
  int64_t file_size(const std::string& path) const override;
  /// One positioned read: a few kilobytes of a file of any size.
  std::string read_range(const std::string& path, int64_t offset, size_t length) const override;
  bool is_file(const std::string& path) const override;
  bool is_directory(const std::string& path) const override;
  std::vector<std::string> list(const std::string& path) const override;
  void write_file(const std::string& path, const std::string& bytes) const override;
  std::optional<std::string> variable(const std::string& name) const override;
  /// Never throws for a missing library, driver or GPU: those are reasons in `absent_because`.
  LocalGpus local_gpus() const override;

 private:
  std::string nvml_library_;
};

}  // namespace vram
