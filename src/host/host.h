#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/environment.h"

namespace vram {

class Http;

/// The operating system: files, environment variables, the network through libcurl, and the NVIDIA driver through NVML.
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
  void make_directories(const std::string& path) const override;
  /// libcurl is loaded at the first call: VRAM_CURL_LIBRARY, else the names under which systems install it. It honours
  /// the variables for proxies. Certificates besides the system's: SSL_CERT_FILE, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE.
  std::vector<HttpReply> http_get(const std::vector<HttpRequest>& requests) const override;
  /// Requests that take longer than a second are shown on standard error where that is a terminal.
  void show_progress() { progress_ = true; }

 private:
  std::string nvml_library_;
  bool progress_ = false;
  mutable std::mutex http_mutex_;
  mutable std::shared_ptr<Http> http_;  // keeps its connections open between requests
};

}  // namespace vram
