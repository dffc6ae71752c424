#include <string>
#include <vector>

#include "cli/run.h"
#include "cli/terminal.h"
#include "host/host.h"

int main(int argc, char** argv) {
  vram::HostEnvironment environment;
  environment.show_progress();
  const vram::cli::Outcome outcome =
      vram::cli::run(std::vector<std::string>(argv + 1, argv + argc), environment, vram::cli::standard_output());
  vram::cli::write_output(outcome.output);
  vram::cli::write_error(outcome.error);
  return outcome.status;
}
