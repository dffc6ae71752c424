#pragma once

#include <string>

#include "api/models.h"
#include "report/console.h"

namespace vram {

/// The list of known models; shortened to a screen unless Style::all.
std::string render(const ModelsAnswer& answer, const Style& style);
/// One model taken apart. `tensors`: with every kind of tensor; modules too with Style::all.
std::string render(const ModelAnswer& answer, bool tensors, const Style& style);

}  // namespace vram
