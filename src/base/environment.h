#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace vram {

/// What NVML says about one GPU of this machine.
struct LocalGpu {
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
  int64_t total_bytes = 0;
  int64_t used_bytes = 0;
  int64_t free_bytes = 0;
  std::string driver;
};

/// What was found when this machine's GPUs were asked for: GPUs, or the reason why there are none.
struct LocalGpus {
  std::vector<LocalGpu> gpus;
  std::string absent_because;  ///< empty where GPUs were found
};

/// One GET over http or https. Redirects are answers like others: whether to follow one is the caller's decision.
struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  ///< "Name: value"
  std::string range;                 ///< "0-131071": bytes, both ends included; empty: the whole
  size_t limit = 0;                  ///< bytes of the body
  bool cut_at_limit = false;         ///< a longer body is cut there; else it is a problem
  int connect_seconds = 10;
  int stall_seconds = 10;  ///< given up where that long less than 1 kB/s arrived
  int total_seconds = 120;
};

struct HttpReply {
  enum class Problem : uint8_t {
    none,        ///< the server answered; see status
    no_library,  ///< detail: what was looked for
    resolve,     ///< the name has no address
    connect,
    proxy,
    tls,
    certificates,  ///< the file of trusted certificates can't be read
    timeout,
    cut_off,    ///< the body ended before its announced length
    too_large,  ///< beyond the limit
    other
  };
  Problem problem = Problem::none;
  std::string detail;                                        ///< the library's words, for `problem`
  int status = 0;                                            ///< 0 where nothing was answered
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  std::string body;

  /// The first header of that (lower-case) name; empty where there is none.
  std::string_view header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return {};
  }
};

/// The only way to the operating system for rooms above host/. host/ implements it; tests and the web use others.
class Environment {
 public:
  virtual ~Environment() = default;
  /// The file's bytes. UnavailableError where it can't be read, InputError where it exceeds `limit`.
  virtual std::string read_file(const std::string& path, size_t limit) const = 0;
  virtual bool is_file(const std::string& path) const = 0;
  virtual bool is_directory(const std::string& path) const = 0;
  /// Bytes of a regular file. UnavailableError where it can't be had, InputError where it is something else.
  virtual int64_t file_size(const std::string& path) const {
    return static_cast<int64_t>(read_file(path, kWholeFile).size());
  }
  /// `length` bytes from `offset` on, fewer only where the file ends. Errors as of read_file. Reading a part must not
  /// cost more than that part; this default is for environments whose files are small.
  virtual std::string read_range(const std::string& path, int64_t offset, size_t length) const {
    const std::string whole = read_file(path, kWholeFile);
    if (offset < 0 || static_cast<uint64_t>(offset) >= whole.size()) return {};
    return whole.substr(static_cast<size_t>(offset), length);
  }
  /// Plain names in a directory, sorted; empty where it can't be read.
  virtual std::vector<std::string> list(const std::string& path) const = 0;
  /// Writes a temporary file beside `path`, then renames it. UnavailableError where that fails; nothing half-written.
  virtual void write_file(const std::string& path, const std::string& bytes) const = 0;
  virtual std::optional<std::string> variable(const std::string& name) const = 0;
  virtual LocalGpus local_gpus() const = 0;
  /// Makes a directory and those above it, readable by this user alone. UnavailableError where that fails.
  virtual void make_directories(const std::string& path) const {
    throw UnavailableError(printable(path, 200) + ": no directories are made here");
  }
  /// All requests at once; replies in their order. Never throws for what the network does.
  virtual std::vector<HttpReply> http_get(const std::vector<HttpRequest>& requests) const {
    HttpReply none;
    none.problem = HttpReply::Problem::no_library;
    none.detail = "there is no network here";
    return std::vector<HttpReply>(requests.size(), none);
  }

 private:
  static constexpr size_t kWholeFile = size_t{1} << 30;
};

}  // namespace vram
