#pragma once

#include "cli/verbs.h"

namespace vram::cli {

/// Verbs whose report is a page: it can be written as text, Markdown or HTML, to the terminal or to a file.
Reply run_sheet(Request& request, const Knowledge& knowledge);
Reply run_diff(Request& request, const Knowledge& knowledge);
Reply run_tiers(Request& request, const Knowledge& knowledge);

/// "--format" and "--output".
std::vector<Option> page_options();

}  // namespace vram::cli
