#pragma once

#include "cli/run.h"

namespace vram::cli {

/// Standard output as it is.
Terminal standard_output();
/// Writes all of `text` to standard output or standard error. A closed pipe is no error of ours and stays silent.
void write_output(const std::string& text);
void write_error(const std::string& text);

}  // namespace vram::cli
