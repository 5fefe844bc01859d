// The verb top: the status of a job, again and again.
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "launcher/ctl/job_verbs.hpp"
#include "launcher/ctl/output.hpp"
#include "launcher/ctl/screen.hpp"

namespace cpprun {
namespace {

using namespace ctl;

void show(const std::string& text) {
  winsize size{};
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  if (is_terminal) ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  const size_t rows = size.ws_row > 0 ? size.ws_row : 24;
  const size_t columns = size.ws_col > 0 ? size.ws_col : 80;
  print(is_terminal ? frame(text, rows, columns) : text + "\n");
  std::fflush(stdout);
}

}  // namespace

// Ends with the job: what can't be found any more after it was shown once has ended.
Status top(const JobOptions& options) {
  JobOptions one = options;
  if (::isatty(STDOUT_FILENO) == 1) print("\x1b[2J");
  for (int64_t shown = 0; options.frames == 0 || shown < options.frames; ++shown) {
    if (shown > 0) ::poll(nullptr, 0, static_cast<int>(options.every_s * 1000));
    Result<std::string> text = status_words(one);
    if (!text && shown > 0) return {};
    if (!text) return text.error();
    show(*text);
    if (std::ferror(stdout) != 0) return {};  // whoever read it has gone
  }
  return {};
}

}  // namespace cpprun
