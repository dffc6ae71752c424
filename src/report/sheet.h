#pragma once

#include "api/sheet.h"
#include "report/page.h"

namespace vram {

/// The three accounts on one page. `all`: every line of every account instead of the largest.
Page sheet_page(const SheetAnswer& answer, Lang lang, bool all);

}  // namespace vram
