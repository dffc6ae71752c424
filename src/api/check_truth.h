#pragma once

#include "api/check.h"

namespace vram {

/// Answers a claim about how memory works: the row's text with its figures computed now.
void answer_truth(CheckAnswer& answer, const Knowledge& knowledge);

}  // namespace vram
