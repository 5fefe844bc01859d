#include "agent/process/diagnostics/stuck_process.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "agent/process/proc_files.hpp"
#include "common/limits/agent.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

// "[<0>] fuse_request_wait+0x1d/0x30" gives "fuse_request_wait".
std::string function_of(const std::string& frame) {
  std::string name = frame.substr(std::min(frame.size(), frame.find("] ") + 2));
  return name.substr(0, name.find('+'));
}

std::string stack_text(const std::string& stack) {
  std::string text;
  size_t frames = 0;
  for (const std::string& line : text::split(stack, '\n')) {
    if (text::strip(line).empty()) continue;
    if (++frames > limits::kStuckStackFrames) return text + " < ...";
    text += (text.empty() ? "" : " < ") + function_of(line);
  }
  return text;
}

bool is_done(char state) { return state == 'Z' || state == 'X' || state == '?'; }

// The folder of a thread that has not exited. The folder of the process if all have: a tracer may
// hold the status of a dead process.
std::string blocked_thread(const std::string& process) {
  const std::string tasks = process + "/task";
  const UniqueFd folder(::open(tasks.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::string found = process;
  if (!folder.is_open()) return found;
  size_t seen = 0;
  for_each_entry(folder.get(), [&](const char* name, bool) {
    if (name[0] == '.' || found.starts_with(tasks) || ++seen > limits::kStuckThreads) return;
    const std::string thread = tasks + "/" + name;
    const auto stat = parse_stat(read_small_file(thread + "/stat"));
    if (stat && !is_done(stat->state)) found = thread;
  });
  return found;
}

}  // namespace

std::string name_of(const StuckProcess& process) {
  const std::string pid = std::to_string(process.pid);
  if (process.rank) return "rank " + std::to_string(process.rank->value) + " (pid " + pid + ")";
  return "process " + pid + ", left behind by " +
         (process.local_rank ? "local rank " + std::to_string(process.local_rank->value)
                             : "a worker");
}

std::string describe_thread(const std::string& status, const std::string& wait_channel,
                            const std::string& stack) {
  const std::string state(value_of(status, "State:"));
  if (state.empty()) return "its state cannot be read";
  const std::string tracer(value_of(status, "TracerPid:"));
  const bool is_traced = !tracer.empty() && tracer != "0";
  std::string text = "state " + state;
  if (is_traced) text += ", held by the tracer with pid " + tracer;
  text += ", wait channel ";
  text += wait_channel.empty() || wait_channel == "0" ? "unknown" : wait_channel;
  const std::string frames = stack_text(stack);
  text += frames.empty() ? ", kernel stack not readable" : ", kernel stack " + frames;
  if (is_traced) return text + "; it ends when the tracer does";
  if (state.starts_with('D')) {
    text +=
        "; it waits inside the kernel, for a device or a file server: bring that back, or "
        "restart the node";
  }
  return text;
}

std::string describe_foreign(const std::string& status, uint32_t own_user) {
  // Uid: real, effective, saved and file system user.
  const std::vector<std::string> users = text::split(value_of(status, "Uid:"), '\t');
  const std::string user = users.size() < 2 ? "another user" : "user " + users[1];
  return "cpprun, which runs as user " + std::to_string(own_user) +
         ", may not signal it (EPERM), because it has become " + user +
         " (sudo, setuid); end it as that user";
}

std::string describe(const StuckProcess& process) {
  const std::string folder = "/proc/" + std::to_string(process.pid);
  const bool is_foreign = ::kill(process.pid, 0) != 0 && errno == EPERM;
  const std::string thread = is_foreign ? folder : blocked_thread(folder);
  const std::string status = read_small_file(thread + "/status");
  const std::string what = is_foreign ? describe_foreign(status, ::geteuid())
                                      : describe_thread(status, read_small_file(thread + "/wchan"),
                                                        read_small_file(thread + "/stack"));
  return text::printable(name_of(process) + " has not ended " + text::seconds(process.since) +
                         " after SIGKILL: " + what);
}

}  // namespace cpprun
