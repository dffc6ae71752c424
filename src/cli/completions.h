#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"

namespace vram::cli {

/// The shells that completions() knows.
const std::vector<std::string_view>& shells();

/// A script for the shell that completes verbs, options and their values, made from the tables of verbs and fields.
/// `models` and `devices` are offered where a model or a machine stands. Precondition: one of shells().
std::string completions(std::string_view shell, Lang lang, const std::vector<std::string>& models,
                        const std::vector<std::string>& devices);

}  // namespace vram::cli
