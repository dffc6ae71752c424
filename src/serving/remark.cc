#include "serving/remark.h"

#include <fmt/args.h>

namespace vram {

std::string remark_text(Lang lang, const Remark& remark) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const auto& [name, value] : remark.values) store.push_back(fmt::arg(name.c_str(), value));
  return fmt::vformat(text(lang, remark.id), store);
}

}  // namespace vram
