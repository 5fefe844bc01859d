#include "agent/process/diagnostics/user_command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "agent/process/spawn/helper_process.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/machine/clock.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

using namespace std::chrono_literals;

// Appends what is there, and keeps the end of it.
void drain_output(int from, std::string& output) {
  for (char bytes[4096];;) {
    const ssize_t got = ::read(from, bytes, sizeof bytes);
    if (got <= 0) return;
    output.append(bytes, static_cast<size_t>(got));
    if (output.size() <= limits::kNodeCheckOutputBytes) continue;
    output.erase(0, output.size() - limits::kNodeCheckOutputBytes / 2);
  }
}

// False: it has not ended by then.
bool await_end(int pidfd, int from, Instant until, std::string& output) {
  while (true) {
    const Duration left = until - boot_now();
    if (left <= Duration{}) return false;
    pollfd watched[] = {{pidfd, POLLIN, 0}, {from, POLLIN, 0}};
    const auto milliseconds = static_cast<int>(left / 1ms) + 1;
    if (::poll(watched, 2, milliseconds) <= 0) continue;
    drain_output(from, output);
    if (watched[0].revents != 0) return true;
    // The command has closed its output, and only its end matters.
    if ((watched[1].revents & POLLHUP) != 0) from = -1;
  }
}

std::string last_line_of(const std::string& output) {
  const std::string_view text = text::strip(output);
  const size_t newline = text.rfind('\n');
  return text::one_line(newline == std::string_view::npos ? text : text.substr(newline + 1),
                        limits::kNodeCheckLineBytes);
}

std::string end_text(int status) {
  if (WIFSIGNALED(status)) return "killed by " + signal_name(WTERMSIG(status));
  return "exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

std::string run_user_command(const std::vector<std::string>& command, const std::string& token,
                             Duration timeout) {
  Result<HelperProcess> check = HelperProcess::start(command, {"CPPRUN_TOKEN=" + token});
  if (!check) return check.error().text;
  ::fcntl(check->output(), F_SETFL, O_NONBLOCK);
  std::string output;
  const bool has_ended = await_end(check->pidfd(), check->output(), boot_now() + timeout, output);
  const std::optional<int> status = check->end();
  if (!status) {
    return "it did not end within " + text::seconds(timeout, 0) + ", and SIGKILL did not end it";
  }
  const std::string last = last_line_of(output);
  if (has_ended && *status == 0) return "";
  const std::string how =
      has_ended ? end_text(*status) : "it did not end within " + text::seconds(timeout, 0);
  return last.empty() ? how : last + " (" + how + ")";
}

}  // namespace cpprun
