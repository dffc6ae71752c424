#pragma once

#include <cstdint>
#include <string_view>

namespace vram::arch {

/// What llama.cpp knows of an architecture without reading it from the file.
struct GgufArch {
  std::string_view name;        ///< general.architecture
  std::string_view family;      ///< the model type of the published config
  std::string_view activation;  ///< of the MLP
  /// Every n-th layer sees everything and the others a window; 1: all slide; 0: as the file says, else none slides.
  int64_t window_period = 0;
  int64_t window = 0;  ///< where the file gives none
  bool chunked = false;
};

/// Null for architectures that are not listed.
const GgufArch* find_gguf_arch(std::string_view name);

}  // namespace vram::arch
