#pragma once

#include <map>

#include "base/environment.h"
#include "base/error.h"

namespace vram {

/// An environment of files and GPUs held in memory, for tests.
class FakeEnvironment : public Environment {
 public:
  std::map<std::string, std::string> files;
  LocalGpus gpus{.gpus = {}, .absent_because = "no driver"};

  std::string read_file(const std::string& path, size_t limit) const override {
    const auto found = files.find(path);
    if (found == files.end()) throw UnavailableError(path + ": no such file");
    if (found->second.size() > limit) throw InputError({.file = path, .problem = "is too large"});
    return found->second;
  }
  bool is_file(const std::string& path) const override { return files.count(path) != 0; }
  bool is_directory(const std::string&) const override { return false; }
  std::vector<std::string> list(const std::string&) const override { return {}; }
  void write_file(const std::string& path, const std::string&) const override {
    throw UnavailableError(path + ": nothing is written here");
  }
  std::optional<std::string> variable(const std::string&) const override { return std::nullopt; }
  LocalGpus local_gpus() const override { return gpus; }
};

}  // namespace vram
