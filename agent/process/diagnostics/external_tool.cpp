#include "agent/process/diagnostics/external_tool.hpp"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/extend.hpp>
#include <boost/process/io.hpp>
#include <boost/process/pipe.hpp>

#include "agent/process/cleanup/orphan_sweep.hpp"
#include "agent/process/spawn/spawn.hpp"
#include "common/machine/clock.hpp"

namespace cpprun {
namespace {

namespace bp = boost::process;

// Reads the tool's output until its end, `until` or `bytes_max`.
std::string read_until(int fd, Instant until, size_t bytes_max) {
  std::string output;
  std::array<char, 4096> buffer{};
  while (output.size() < bytes_max) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - boot_now()).count();
    pollfd more{fd, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&more, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    const ssize_t size =
        ::read(fd, buffer.data(), std::min(buffer.size(), bytes_max - output.size()));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    output.append(buffer.data(), static_cast<size_t>(size));
  }
  return output;
}

// The agent's threads block all signals, and the tool would inherit that. The tool dies with the
// thread that started it.
void prepare_child() {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

}  // namespace

std::string find_tool(const std::string& name) {
  const char* path = ::getenv("PATH");
  const Result<std::string> found =
      find_program(name, {"PATH=" + std::string(path != nullptr ? path : "/usr/bin:/bin")});
  return found ? *found : "";
}

Result<std::string> run_tool(const std::string& program, const std::vector<std::string>& arguments,
                             Duration takes, size_t bytes_max) {
  bp::pipe output;
  std::error_code error;
  const auto on_exec = [](auto&) { prepare_child(); };
  bp::child tool(bp::exe = program, bp::args = arguments,
                 bp::std_in<bp::null, (bp::std_out & bp::std_err)> output,
                 bp::extend::on_exec_setup = on_exec, error);
  if (error) {
    return Error{ErrorKind::System, "cannot start " + program + ": " + error.message()};
  }
  register_helper(tool.id());  // it is no orphan of a worker
  if (output.native_sink() >= 0) {
    ::close(output.native_sink());
    output.assign_sink(-1);
  }
  std::string text = read_until(output.native_source(), boot_now() + takes, bytes_max);
  const int pid = tool.id();
  tool.terminate(error);  // also after its end; waits for it
  unregister_helper(pid);
  return text;
}

}  // namespace cpprun
