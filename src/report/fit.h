#pragma once

#include <string>

#include "api/fit.h"
#include "report/console.h"

namespace vram {

/// One page: what can be done with a model on some cards.
std::string render(const FitAnswer& answer, const Style& style);
std::string render(const LargestAnswer& answer, const Style& style);

}  // namespace vram
