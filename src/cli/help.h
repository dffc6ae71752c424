#pragma once

#include <string>

#include "cli/options.h"

namespace vram::cli {

inline constexpr const char* kVersion = VRAM_VERSION;

/// "--tensor-parallel, --tp N": an option with its short name and what its value looks like.
std::string option_text(const Field& f);
/// What a field means, with its choices and its default.
std::string help_text(const Style& style, const Field& f);

/// What `vram` alone prints: the verbs and a few commands to start with.
std::string overview(const Style& style);
/// Usage, examples and options of one verb, grouped.
std::string help(const Style& style, const VerbEntry& verb);

}  // namespace vram::cli
