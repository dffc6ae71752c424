// A stand-in for the NVIDIA management library. FAKE_NVML says how it behaves: "gpus=2", "init=18" (that error code at
// the start), "count=9", "memory=3", "overlong" (a name without an end).
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string behaviour() {
  const char* text = std::getenv("FAKE_NVML");
  return text ? text : "";
}

int number(const char* key, int fallback) {
  const std::string text = behaviour();
  const size_t at = text.find(std::string(key) + "=");
  return at == std::string::npos ? fallback : std::atoi(text.c_str() + at + std::strlen(key) + 1);
}

int devices[8];

}  // namespace

extern "C" {

struct FakeMemory {
  unsigned long long total, free, used;
};

int nvmlInit_v2() { return number("init", 0); }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(number("gpus", 0));
  return number("count", 0);
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= 8) return 2;
  *device = &devices[index];
  return 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned length) {
  if (behaviour().find("overlong") != std::string::npos) {
    std::memset(name, 'x', length);
    return 0;
  }
  std::strncpy(name, "NVIDIA H100 80GB HBM3", length);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, FakeMemory* memory) {
  const int code = number("memory", 0);
  if (code != 0) return code;
  memory->total = 85520809984ULL;
  memory->used = 1073741824ULL;
  memory->free = memory->total - memory->used;
  return 0;
}
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::strncpy(version, "550.54.15", length);
  return 0;
}
}
