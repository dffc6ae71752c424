#pragma once

#include "api/diff.h"
#include "report/page.h"

namespace vram {

/// What tells two jobs apart, what each change does, and every quantity that differs (`all`: those that don't, too).
Page diff_page(const DiffAnswer& answer, Lang lang, bool all);

}  // namespace vram
