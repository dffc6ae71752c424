#pragma once

#include <string_view>

#include "base/document.h"

namespace vram {

/// What a plain (unquoted) YAML scalar is under the core schema of YAML 1.2 (section 10.3.2): null, true/false, an
/// integer (decimal, 0o, 0x), a real (.inf and .nan included), else a string. `no`, `1_000` and `2024-01-01` are
/// strings. Integers that do not fit int64 become reals, which may be infinite.
Document core_scalar(std::string_view text);

}  // namespace vram
