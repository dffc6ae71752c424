#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/messages.h"

namespace vram {

/// A sentence of the message catalogue with its numbers, to be written in the reader's language.
struct Remark {
  std::string_view id;                                      ///< "serving.remark.window"
  std::vector<std::pair<std::string, std::string>> values;  ///< named placeholders
};

std::string remark_text(Lang lang, const Remark& remark);

}  // namespace vram
