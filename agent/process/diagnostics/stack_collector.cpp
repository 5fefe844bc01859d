#include "agent/process/diagnostics/stack_collector.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "agent/process/proc_files.hpp"
#include "agent/process/spawn/helper_process.hpp"
#include "common/limits/agent.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/files.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/text.hpp"
#include "rendezvous/protocol/worker/worker_page.hpp"

namespace cpprun {
namespace {

using State = WorkerObservation::State;
using namespace std::chrono_literals;

constexpr Duration kOwnStackStep = 20ms;  // between two checks of the stack file

// Checked before the signal is sent, because an uncaught one would end the worker.
bool catches_signal(int pid, int signal) {
  const std::string status = read_small_file(proc_path(pid, "status"));
  const std::string mask(value_of(status, "SigCgt:"));
  const uint64_t caught = std::strtoull(mask.c_str(), nullptr, 16);
  return (caught >> (signal - 1) & 1) != 0;
}

off_t size_of(int file) {
  struct stat info {};
  return ::fstat(file, &info) == 0 && S_ISREG(info.st_mode) ? info.st_size : -1;
}

std::string read_from(int file, off_t begin) {
  std::string text(limits::kStackTextBytes, '\0');
  const ssize_t size = ::pread(file, text.data(), text.size(), begin);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

// Waits until the file has grown and no longer grows.
void await_growth(int file, off_t before, Instant until) {
  off_t last = before;
  while (boot_now() < until) {
    ::poll(nullptr, 0, static_cast<int>(kOwnStackStep / 1ms));
    const off_t size = size_of(file);
    if (size < 0 || (size > before && size == last)) return;
    last = size;
  }
}

// The stack that the worker writes on request; "": it cannot.
std::string own_stack(const StackTarget& target) {
  const bool can_speak = target.worker.state == State::Going;
  if (!target.stack_file || !can_speak) return "";
  const int pid = target.worker.pid;
  const std::string path = proc_path(pid, "fd/") + std::to_string(*target.stack_file);
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  const off_t before = file.is_open() ? size_of(file.get()) : -1;
  if (before < 0 || !catches_signal(pid, kStackSignal) ||
      ::syscall(SYS_tgkill, pid, pid, kStackSignal) != 0)
    return "";
  await_growth(file.get(), before, boot_now() + limits::kOwnStackTimeout);
  return read_from(file.get(), before);
}

std::string run_tool(const std::vector<std::string>& argv, Duration takes) {
  return output_of(argv, takes, limits::kStackTextBytes);
}

std::string tool_stack(const WorkerObservation& worker, Instant until) {
  const Duration takes = std::min(limits::kStackToolTimeout, until - boot_now());
  if (takes <= Duration{} || worker.state == State::Blocked) return "";
  const std::string pid = std::to_string(worker.pid);
  const std::string spy = run_tool({"py-spy", "dump", "--pid", pid}, takes);
  if (spy.find("Thread ") != std::string::npos) return spy;
  const std::string gdb = run_tool(
      {"gdb", "-nx", "-batch", "-p", pid, "-ex", "set width 0", "-ex", "thread apply all bt 30"},
      takes);
  const size_t begin = gdb.find("\nThread ");
  return begin != std::string::npos ? gdb.substr(begin + 1) : "";
}

std::string kernel_view(int pid) {
  std::string view = "kernel: waits in ";
  const std::string channel = read_small_file(proc_path(pid, "wchan"));
  view += channel.empty() || channel == "0" ? "nothing that the kernel names" : channel;
  view += "\n";
  return view + read_small_file(proc_path(pid, "stack"));  // only root may read it
}

std::string indented(const std::string& text) {
  std::string out;
  for (const std::string& line : text::split(text, '\n')) {
    if (!text::strip(line).empty()) out += "  " + line + "\n";
  }
  return out;
}

}  // namespace

std::string summary_of(const WorkerObservation& worker) {
  std::string text = "rank " + std::to_string(worker.rank.value) + " (local rank " +
                     std::to_string(worker.local_rank.value) + ", pid " +
                     std::to_string(worker.pid) + "): ";
  if (worker.beat) {
    text += "step " + std::to_string(worker.beat->step) + ", " +
            std::to_string(worker.beat->collectives) + " collectives, last heartbeat " +
            text::seconds(worker.beat->age) + " ago";
  } else {
    text += "no heartbeats";
  }
  if (worker.section) {
    text +=
        "; in the section '" + worker.section->name + "' for " + text::seconds(worker.section_age);
  }
  if (worker.state == State::Stopped) text += "; stopped by a signal";
  if (worker.state == State::Blocked) text += "; blocked inside the kernel";
  if (worker.state == State::Traced) text += "; a debugger is attached";
  return text;
}

std::vector<std::string> collect_stacks(const std::vector<StackTarget>& targets) {
  const Instant until = boot_now() + limits::kStackCollectionTimeout;
  std::vector<std::string> texts;
  for (const StackTarget& target : targets) {
    // Before a tool attaches: its ptrace would be all that the kernel shows.
    const std::string kernel = kernel_view(target.worker.pid);
    std::string stack = own_stack(target);
    if (stack.empty()) stack = tool_stack(target.worker, until);
    if (stack.empty()) stack = "(no stack: neither its own, nor by py-spy or gdb)\n";
    texts.push_back(summary_of(target.worker) + "\n" +
                    text::printable(indented(stack + "\n" + kernel)));
  }
  return texts;
}

}  // namespace cpprun
