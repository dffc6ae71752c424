#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/units.h"
#include "host/host.h"

namespace vram {
namespace {

// The few names of NVML that are used (NVML API reference, stable since driver 319). The header is not needed to build,
// nor the library to run.
using Return = int;
using DeviceHandle = void*;
struct Memory {
  unsigned long long total, free, used;
};
constexpr Return kSuccess = 0;
constexpr Return kNotSupported = 3;
constexpr Return kNoPermission = 4;
constexpr Return kDriverNotLoaded = 9;
constexpr Return kVersionMismatch = 18;
constexpr unsigned kMostGpus = 1024;

class Nvml {
 public:
  explicit Nvml(const std::string& library) : handle_(::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
    if (!handle_) return;
    const bool found = load(init, "nvmlInit_v2") && load(shutdown, "nvmlShutdown") &&
                       load(count, "nvmlDeviceGetCount_v2") && load(by_index, "nvmlDeviceGetHandleByIndex_v2") &&
                       load(name, "nvmlDeviceGetName") && load(memory, "nvmlDeviceGetMemoryInfo") &&
                       load(driver_version, "nvmlSystemGetDriverVersion");
    complete_ = found;
  }
  ~Nvml() {
    if (started_) shutdown();
    if (handle_) ::dlclose(handle_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool loaded() const { return handle_ != nullptr; }
  bool complete() const { return complete_; }
  Return start() {
    const Return result = init();
    started_ = result == kSuccess;
    return result;
  }

  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*by_index)(unsigned, DeviceHandle*) = nullptr;
  Return (*name)(DeviceHandle, char*, unsigned) = nullptr;
  Return (*memory)(DeviceHandle, Memory*) = nullptr;
  Return (*driver_version)(char*, unsigned) = nullptr;

 private:
  template <class F>
  bool load(F*& slot, const char* symbol) {
    slot = reinterpret_cast<F*>(::dlsym(handle_, symbol));
    return slot != nullptr;
  }

  void* handle_;
  bool complete_ = false;
  bool started_ = false;
};

std::string reason(Return code) {
  switch (code) {
    case kNoPermission:
      return "the NVIDIA driver refuses access (device files not readable, or none in this container)";
    case kDriverNotLoaded:
      return "the NVIDIA driver is installed but not loaded";
    case kVersionMismatch:
      return "the NVIDIA driver in the kernel and its library have different versions (reboot or reload the driver)";
    default:
      return fmt::format("NVML failed with code {}", code);
  }
}

template <class F>
std::string text_of(F&& ask) {
  std::array<char, 128> buffer{};
  if (ask(buffer.data(), static_cast<unsigned>(buffer.size() - 1)) != kSuccess) return {};
  buffer.back() = '\0';
  return printable(buffer.data(), buffer.size());
}

// Parts that share memory with the host (DGX Spark) have no memory total in NVML.
bool shared_memory(const Environment& environment, Memory& memory) {
  std::string text;
  try {
    text = environment.read_file("/proc/meminfo", 1 << 20);
  } catch (const std::runtime_error&) {
    return false;
  }
  const auto kib = [&](const char* key) -> unsigned long long {
    const size_t at = text.find(key);
    return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + std::string_view(key).size(), nullptr, 10);
  };
  memory.total = kib("MemTotal:") * 1024;
  memory.free = kib("MemAvailable:") * 1024;
  memory.used = memory.total - std::min(memory.total, memory.free);
  return memory.total > 0;
}

Bytes clamped(unsigned long long bytes) {
  return static_cast<Bytes>(std::min<unsigned long long>(bytes, static_cast<unsigned long long>(INT64_MAX)));
}

}  // namespace

LocalGpus HostEnvironment::local_gpus() const {
  const std::string library =
      !nvml_library_.empty() ? nvml_library_ : variable("VRAM_NVML_LIBRARY").value_or("libnvidia-ml.so.1");
  Nvml nvml(library);
  if (!nvml.loaded())
    return {.gpus = {}, .absent_because = "no NVIDIA driver is installed (" + library + " not found)"};
  if (!nvml.complete()) return {.gpus = {}, .absent_because = library + " lacks functions of NVML"};
  if (const Return code = nvml.start(); code != kSuccess) return {.gpus = {}, .absent_because = reason(code)};
  unsigned count = 0;
  if (const Return code = nvml.count(&count); code != kSuccess) return {.gpus = {}, .absent_because = reason(code)};
  if (count == 0) return {.gpus = {}, .absent_because = "the NVIDIA driver reports no GPU"};

  const std::string driver = text_of([&](char* out, unsigned size) { return nvml.driver_version(out, size); });
  LocalGpus found;
  std::string problem;
  for (unsigned i = 0; i < std::min(count, kMostGpus); ++i) {
    DeviceHandle device = nullptr;
    Memory memory{};
    Return code = nvml.by_index(i, &device);
    if (code == kSuccess) code = nvml.memory(device, &memory);
    if (code == kNotSupported && device && shared_memory(*this, memory)) code = kSuccess;
    if (code != kSuccess || memory.total == 0) {
      problem = fmt::format("GPU {}: {}", i, code != kSuccess ? reason(code) : "reports no memory");
      continue;
    }
    LocalGpu gpu;
    gpu.name = text_of([&](char* out, unsigned size) { return nvml.name(device, out, size); });
    gpu.total_bytes = clamped(memory.total);
    gpu.used_bytes = clamped(memory.used);
    gpu.free_bytes = clamped(memory.free);
    gpu.driver = driver;
    found.gpus.push_back(std::move(gpu));
  }
  if (found.gpus.empty()) found.absent_because = problem;
  return found;
}

}  // namespace vram
