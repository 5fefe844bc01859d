// The verb top: repeats the status of a job.
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <optional>

#include "common/text.hpp"
#include "launcher/cpprunctl/jobs/job_tables.hpp"
#include "launcher/cpprunctl/jobs/job_verbs.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"
#include "launcher/cpprunctl/text/text_table.hpp"

namespace cpprun {
namespace {

using namespace ctl;

void show(const std::string& text) {
  winsize size{};
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  if (is_terminal) ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  const size_t rows = size.ws_row > 0 ? size.ws_row : 24;
  const size_t columns = size.ws_col > 0 ? size.ws_col : 80;
  const std::string plain = text::printable(text);
  print_unchanged(is_terminal ? frame(plain, rows, columns) : plain + "\n");
  std::fflush(stdout);
}

// Switches the terminal to unbuffered input without echo, and back in the destructor. Ctrl-C
// arrives as a key, so it cannot skip the destructor. Does nothing if stdin is no terminal.
class Keys {
 public:
  Keys() {
    termios now{};
    if (::isatty(STDIN_FILENO) != 1 || ::tcgetattr(STDIN_FILENO, &now) != 0) return;
    before_ = now;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  ~Keys() {
    if (before_) ::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
  }
  Keys(const Keys&) = delete;

  // Waits for the time or a key. True: the key is q or Ctrl-C.
  bool is_over(int milliseconds) const {
    pollfd key{before_ ? STDIN_FILENO : -1, POLLIN, 0};
    char pressed = 0;
    if (::poll(&key, 1, milliseconds) <= 0) return false;
    constexpr char kCtrlC = 3;
    return ::read(STDIN_FILENO, &pressed, 1) != 1 || pressed == 'q' || pressed == kCtrlC;
  }

 private:
  std::optional<termios> before_;
};

}  // namespace

// Ends when a job that was shown before can no longer be found.
Status top(const JobCommandOptions& options) {
  JobCommandOptions one = options;
  // The whole name: a later job that begins with the same letters does not end the display.
  if (auto agents = agents_of(local_jobs(), options.job); one.endpoint.empty() && agents) {
    one.job = agents->front().view.run_id;
  }
  if (::isatty(STDOUT_FILENO) == 1) print_unchanged("\x1b[2J");
  const Keys keys;
  for (int64_t shown = 0; options.frames == 0 || shown < options.frames; ++shown) {
    if (shown > 0 && keys.is_over(static_cast<int>(options.every_s * 1000))) return {};
    Result<std::string> text = status_text_of(one, true);
    if (!text && shown > 0) return {};
    if (!text) return text.error();
    show(*text);
    if (std::ferror(stdout) != 0) return {};  // the reader of the pipe has closed it
  }
  return {};
}

}  // namespace cpprun
