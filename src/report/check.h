#pragma once

#include <string>

#include "api/check.h"
#include "report/console.h"

namespace vram {

/// The verdict, the account of every reading, and what to ask next.
std::string render(const CheckAnswer& answer, const Style& style);
/// What can be checked.
std::string render(const ClaimBook& book, const Style& style);

}  // namespace vram
