#pragma once

#include "api/tiers.h"
#include "report/page.h"

namespace vram {

/// The pyramid, offload, checkpoints and data of an answer, as far as it has them. `all`: every store, and sources.
Page tiers_page(const TiersAnswer& answer, Lang lang, bool all);

}  // namespace vram
