#pragma once

#include <string>

#include "api/gpus.h"
#include "report/console.h"

namespace vram {

/// The answer to `vram gpus` for a terminal. A list without words names the devices by vendor and architecture; with
/// words, or Style::all, it is a table.
std::string render_gpus(const GpusAnswer& answer, const Style& style);

}  // namespace vram
