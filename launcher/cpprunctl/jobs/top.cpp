// The command top: repeats the status of a job.
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <optional>
#include <utility>

#include "common/machine/end_signals.hpp"
#include "common/machine/signal_mask.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/shown_state.hpp"
#include "common/text.hpp"
#include "launcher/cpprunctl/jobs/job_commands.hpp"
#include "launcher/cpprunctl/jobs/job_tables.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"
#include "launcher/report/job_report.hpp"
#include "launcher/report/text_table.hpp"

namespace cpprun {
namespace {

using ctl::agents_of;
using ctl::clean;
using ctl::duration_text_us;
using ctl::frame;
using ctl::has_color;
using ctl::local_jobs;
using ctl::print_unchanged;
using ctl::read_run;
using ctl::RunSummary;
using ctl::style_of;
using ctl::worker_order;
using ctl::WorkerOrder;

bool is_on_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

// "14:03:59   workers by rank   s: sort, q: quit".
std::string foot_text(WorkerOrder order) {
  const time_t now = ::time(nullptr);
  tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 16> clock{};
  ::strftime(clock.data(), clock.size(), "%H:%M:%S", &local);
  return styled(
      TextStyle::Faint,
      std::string(clock.data()) + "   workers by " + name_of(order) + "   s: sort, q: quit",
      has_color());
}

void show(const std::string& text, WorkerOrder order) {
  winsize size{};
  if (is_on_terminal()) ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  const size_t rows = size.ws_row > 0 ? size.ws_row : 24;
  const size_t columns = size.ws_col > 0 ? size.ws_col : 80;
  print_unchanged(is_on_terminal() ? frame(text, rows, columns, foot_text(order)) : text + "\n");
  std::fflush(stdout);
}

// Switches the terminal to unbuffered input without echo, and back in the destructor. Ctrl-C
// arrives as a key, and a signal that ends the program waits for the destructor. Does nothing if
// stdin is no terminal.
class Keys {
 public:
  Keys() {
    termios now{};
    if (::isatty(STDIN_FILENO) != 1 || ::tcgetattr(STDIN_FILENO, &now) != 0) return;
    if (Result<UniqueFd> signals = open_end_signals()) signals_ = std::move(*signals);
    before_ = now;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  ~Keys() {
    if (!before_) return;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
    unblock_signals();  // one that waits ends the program here
  }
  Keys(const Keys&) = delete;

  enum class Key { None, Quit, Sort };
  // Waits for the time, a key or a signal.
  Key wait(int milliseconds) const {
    std::array<pollfd, 2> watched{
        {{before_ ? STDIN_FILENO : -1, POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
    char pressed = 0;
    if (::poll(watched.data(), watched.size(), milliseconds) <= 0) return Key::None;
    if (watched[1].revents != 0) return Key::Quit;
    constexpr char kCtrlC = 3;
    if (::read(STDIN_FILENO, &pressed, 1) != 1) return Key::Quit;
    if (pressed == 'q' || pressed == kCtrlC) return Key::Quit;
    return pressed == 's' ? Key::Sort : Key::None;
  }

 private:
  std::optional<termios> before_;
  UniqueFd signals_;
};

// The events of a job's agent here. The file stays readable when the job removes its folder.
class EventsOfJob {
 public:
  explicit EventsOfJob(const std::string& run_folder)
      : file_(run_folder.empty()
                  ? -1
                  : ::open((run_folder + "/events.jsonl").c_str(), O_RDONLY | O_CLOEXEC)) {}

  // How the job has ended, in one line or with its failure summary.
  std::string outcome(const std::string& job) const {
    const RunSummary run = file_.is_open() ? read_run(file_.get()) : RunSummary();
    const std::string name = "job " + clean(job);
    if (run.outcome.empty()) return name + " has ended\n";
    const std::string state = ::cpprun::name_of(shown_state_of_outcome(run.outcome));
    std::string text = name + " " + styled(style_of(state), state, has_color()) + " after " +
                       duration_text_us(run.ended_us - run.begun_us) + ", exit code " +
                       std::to_string(run.exit_code) + "\n";
    if (state == "failed" && !run.failure.empty()) text += text::printable(run.failure) + "\n";
    return text;
  }

 private:
  UniqueFd file_;
};

}  // namespace

Status top(const JobCommandOptions& options) {
  JobCommandOptions one = options;
  std::string folder;
  // The whole name: a later job that begins with the same letters does not end the display.
  if (auto agents = agents_of(local_jobs(), options.job); one.endpoint.empty() && agents) {
    one.job = agents->front().view.run_id;
    folder = agents->front().view.run_folder;
  }
  const EventsOfJob events(folder);
  if (is_on_terminal()) print_unchanged("\x1b[2J");
  const Keys keys;
  for (int64_t shown = 0; options.frames == 0 || shown < options.frames; ++shown) {
    if (shown > 0) {
      const Keys::Key key = keys.wait(static_cast<int>(options.every_s * 1000));
      if (key == Keys::Key::Quit) return {};
      if (key == Keys::Key::Sort) one.sort = name_of(next(worker_order(one.sort)));
    }
    Result<std::string> text = status_text_of(one, true);
    if (!text && shown == 0) return text.error();
    if (!text) {
      print_unchanged(events.outcome(one.job));
      return {};
    }
    show(*text, worker_order(one.sort));
    if (std::ferror(stdout) != 0) return {};  // the reader of the pipe has closed it
  }
  return {};
}

}  // namespace cpprun
