#pragma once

#include <string>

#include "report/console.h"

namespace vram::cli {

/// The manual page vram(1) as roff, made from the tables of verbs, options and fields.
std::string manual(const Style& style);

}  // namespace vram::cli
