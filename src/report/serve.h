#pragma once

#include <string>

#include "api/serve.h"
#include "report/console.h"

namespace vram {

/// The answer in one line, the account of the fullest card, bounds of speed, levers, and what moves K most.
/// Style::explain adds formulas, Style::steps the account by hand, Style::all every rank and everything assumed.
std::string render(const ServeAnswer& answer, const Style& style);

}  // namespace vram
