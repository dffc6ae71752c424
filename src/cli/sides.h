#pragma once

#include <optional>
#include <string>

#include "api/diff.h"
#include "cli/verbs.h"

namespace vram::cli {

/// One job of a comparison, as one word of the command line: a job file, or what would stand behind `vram`, in quotes:
/// "[train|serve] [MODEL or job file] [options]". Fields of `common` lie over the file and under the options.
struct Side {
  Job job;
  std::optional<DiffOf> of;  ///< where it begins with a verb
};
/// InputError names the side (`name`: "A") and what is wrong with it.
Side read_side(const std::string& word, const std::string& name, const Job& common, const Environment& environment);

/// `text` cut into words as a shell does: spaces, quotes and backslashes. InputError on an open quote.
std::vector<std::string> shell_words(const std::string& text, const std::string& name);

}  // namespace vram::cli
