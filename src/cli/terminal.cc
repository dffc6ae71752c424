#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace vram::cli {
namespace {

void write_all(int descriptor, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(descriptor, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
}

}  // namespace

Terminal standard_output() {
  // The reader of a pipe may leave at any time (vram models | head): write() then fails instead of killing us.
  std::signal(SIGPIPE, SIG_IGN);
  Terminal out;
  out.output_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  winsize size{};
  if (out.output_is_terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) out.columns = size.ws_col;
  return out;
}

void write_output(const std::string& text) { write_all(STDOUT_FILENO, text); }
void write_error(const std::string& text) { write_all(STDERR_FILENO, text); }

}  // namespace vram::cli
