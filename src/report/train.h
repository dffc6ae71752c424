#pragma once

#include <string>

#include "api/train.h"
#include "report/console.h"

namespace vram {

/// The answer of `vram train`: whether it fits, the account at the peak, time and traffic, what moves it most.
std::string render(const TrainAnswer& answer, const Style& style);

/// "in the backward pass, layer 3 of 32": the moment of a peak.
std::string when_text(const std::vector<Instant>& when, Lang lang);

}  // namespace vram
