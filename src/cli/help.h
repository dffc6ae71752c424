#pragma once

#include <string>

#include "cli/options.h"

namespace vram::cli {

inline constexpr const char* kVersion = VRAM_VERSION;

/// What `vram` alone prints: the verbs and a few commands to start with.
std::string overview(const Style& style);
/// Usage, examples and options of one verb, grouped.
std::string help(const Style& style, const VerbEntry& verb);

}  // namespace vram::cli
