#pragma once

#include <string_view>
#include <vector>

#include "training/rules.h"

namespace vram {

/// The names of the known stacks, in the order of help: "generic" first.
const std::vector<std::string_view>& stack_names();

/// The newest rules of a stack (src/stacks/NAME/rules.toml). InputError with a near miss for an unknown name.
Rules stack_rules(std::string_view name, const Constants& constants);

}  // namespace vram
