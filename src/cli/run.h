#pragma once

#include <string>
#include <vector>

#include "base/environment.h"

namespace vram::cli {

/// What is known of the streams that the command writes to.
struct Terminal {
  bool output_is_terminal = false;
  int columns = 0;  ///< 0 where unknown
};

/// What one run of the command leaves behind.
struct Outcome {
  std::string output;  ///< for standard output
  std::string error;   ///< for standard error
  int status = 0;
};

/// One run of `vram`. `arguments` is without the program's name. Never throws; touches the system only by
/// `environment`.
Outcome run(const std::vector<std::string>& arguments, const Environment& environment, const Terminal& terminal);

}  // namespace vram::cli
