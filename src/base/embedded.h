#pragma once

#include <cstddef>
#include <string_view>

namespace vram::embedded {

/// One file that was compiled into the library by vram_embed (cmake/Embed.cmake).
struct File {
  std::string_view name;
  std::string_view bytes;
};

}  // namespace vram::embedded
