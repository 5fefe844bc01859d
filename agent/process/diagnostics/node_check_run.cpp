#include "agent/process/diagnostics/node_check_run.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/env.hpp>
#include <boost/process/environment.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/extend.hpp>
#include <boost/process/io.hpp>
#include <boost/process/pipe.hpp>
#include <cstdlib>
#include <optional>
#include <utility>

#include "agent/process/cleanup/helper_start.hpp"
#include "agent/process/spawn/spawn.hpp"
#include "agent/process/spawn/start_ticket.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

namespace bp = boost::process;
using namespace std::chrono_literals;

constexpr Duration kKillTakes = 1s;

// A session of its own, so that its children end with it. The agent's threads block all signals,
// and the command would inherit that.
void prepare_check() {
  ::setsid();
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

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

std::string run_node_check(const std::vector<std::string>& command, const std::string& token,
                           Duration timeout) {
  const char* path = ::getenv("PATH");
  const Result<std::string> program = find_program(
      command.front(), {"PATH=" + std::string(path != nullptr ? path : "/usr/bin:/bin")});
  if (!program) return program.error().text;
  bp::pipe pipe;
  std::error_code error;
  bp::environment environment = boost::this_process::environment();
  environment["CPPRUN_TOKEN"] = token;
  const auto on_exec = [](auto&) { prepare_check(); };
  // The orphan sweep of the round that has just ended would take the check for an orphan, and reap
  // it, before its pid is registered.
  const StartTicket ticket;
  std::optional<HelperStart> start(std::in_place, ticket);
  bp::child check(bp::exe = *program,
                  bp::args = std::vector<std::string>(command.begin() + 1, command.end()),
                  environment, bp::std_in<bp::null, (bp::std_out & bp::std_err)> pipe,
                  bp::extend::on_exec_setup = on_exec, error);
  if (error) return command.front() + " could not be started: " + error.message();
  const int pid = check.id();
  register_helper(pid);
  start.reset();
  check.detach();  // reaped below
  if (pipe.native_sink() >= 0) {
    ::close(pipe.native_sink());
    pipe.assign_sink(-1);
  }
  const int from = pipe.native_source();
  ::fcntl(from, F_SETFL, O_NONBLOCK);
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  std::string output;
  const bool has_ended = await_end(pidfd.get(), from, boot_now() + timeout, output);
  ::kill(-pid, SIGKILL);  // and the children that it has left
  if (!has_ended && !await_end(pidfd.get(), -1, boot_now() + kKillTakes, output)) {
    return "it did not end within " + text::seconds(timeout, 0) + ", and SIGKILL did not end it";
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  unregister_helper(pid);
  const std::string last = last_line_of(output);
  if (has_ended && status == 0) return "";
  const std::string how =
      has_ended ? end_text(status) : "it did not end within " + text::seconds(timeout, 0);
  return last.empty() ? how : last + " (" + how + ")";
}

}  // namespace cpprun
