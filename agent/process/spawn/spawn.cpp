#include "agent/process/spawn/spawn.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "agent/process/spawn/child_exec_setup.hpp"
#include "common/check.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/reap.hpp"
#include "common/text.hpp"
#include "common/thread/process_limits.hpp"

namespace cpprun {
namespace {

// The child's steps need a few hundred bytes; the rest is a safety margin.
constexpr size_t kStackBytes = 64 * 1024;

bool is_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

std::string_view search_path(const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    if (entry.starts_with("PATH=")) return std::string_view(entry).substr(5);
  }
  return "/bin:/usr/bin";  // execvp()'s own default
}

std::string exec_reason(const std::string& program, int error) {
  switch (error) {
    case ENOENT:
      return is_file(program)
                 ? "the interpreter that its first line (#!) or its header names is missing"
                 : "there is no such file";
    case EACCES:
      return is_file(program) ? "it may not be executed (chmod +x, or a mount with noexec)"
                              : "it is a folder, or a folder on the way may not be entered";
    case ENOEXEC:
      return "it is neither a binary for this machine nor a script with a first line such as "
             "#!/bin/sh";
    default: return ::strerror(error);
  }
}

std::string kib_of(const std::vector<std::string>& words) {
  size_t bytes = 0;
  for (const std::string& word : words) bytes += word.size() + 1 + sizeof(char*);
  return std::to_string(bytes / 1024) + " KiB";
}

// Whether a retry would fail in the same way.
bool is_permanent(int error) {
  constexpr std::array kPermanent{ENOENT,  EACCES, EPERM, ENOEXEC,
                                  ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG};
  return std::ranges::find(kPermanent, error) != kPermanent.end();
}

Error step_error(const SpawnPlan& plan, ChildStep step, int error) {
  const std::string start = "cannot start " + plan.program + ": ";
  if (error == E2BIG) {
    return Error{ErrorKind::BadValue, start + "its arguments (" + kib_of(plan.argv) +
                                          ") and environment (" + kib_of(plan.environment) +
                                          ") are too long together"};
  }
  switch (step) {
    case ChildStep::Handle: return system_error(start + "its handle (pidfd_open)", error);
    case ChildStep::Cancelled: return system_error(start + "the start was cancelled", error);
    case ChildStep::Session: return system_error(start + "setsid", error);
    case ChildStep::Cgroup: return system_error(start + "joining the cgroup", error);
    case ChildStep::ParentDeath: return system_error(start + "parent-death signal", error);
    case ChildStep::Cpus: return system_error(start + "its CPUs", error);
    case ChildStep::Descriptors:
      return system_error(start + "closing the agent's descriptors", error);
    case ChildStep::Stdio: return system_error(start + "its standard streams", error);
    default:
      return Error{is_permanent(error) ? ErrorKind::BadValue : ErrorKind::System,
                   start + exec_reason(plan.program, error)};
  }
}

Error clone_error(const SpawnPlan& plan, int error) {
  Error result = system_error("cannot start " + plan.program, error);
  if (error == EAGAIN) result.text += " (too many processes: " + process_limits_text() + ")";
  if (error == EMFILE) result.text += " (too many open files: raise the limit with ulimit -n)";
  return result;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

void reap_failed_start(int pid, StartTicket* ticket) {
  if (ticket != nullptr) ticket->on_child_ended();
  reap(pid);
}

}  // namespace

Result<std::string> find_program(const std::string& name,
                                 const std::vector<std::string>& environment) {
  if (name.empty()) return Error{ErrorKind::BadValue, "the name of the program is empty"};
  if (name.find('/') != std::string::npos) return name;
  std::string refused;
  for (const std::string& folder : text::split(search_path(environment), ':')) {
    std::string path = folder.empty() ? "./" + name : folder + "/" + name;
    if (!is_file(path)) continue;
    if (::access(path.c_str(), X_OK) == 0) return path;
    if (refused.empty()) refused = path;
  }
  if (!refused.empty()) {
    return Error{ErrorKind::BadValue, "cannot start " + name + ": " + refused +
                                          " is on PATH but may not be executed (chmod +x)"};
  }
  return Error{ErrorKind::BadValue, "cannot start " + name + ": no such program on PATH"};
}

SpawnContext::SpawnContext() {
  stack_ = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  CPPRUN_CHECK(stack_ != MAP_FAILED);
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_DFL) {
      signals_.push_back(number);
    }
  }
}

SpawnContext::~SpawnContext() { ::munmap(stack_, kStackBytes); }

int SpawnContext::run_child(ChildPlan& child, const SpawnPlan& plan, int& pidfd) {
  const int cgroup = plan.cgroup;
  char* stack = static_cast<char*>(stack_);
  if (cgroup < 0) return clone_child(child, stack, kStackBytes, pidfd);
  if (cannot_start_in_cgroup_) return run_child_then_join(child, cgroup, pidfd);
  const int pid = clone_child_into(child, stack, kStackBytes, cgroup, pidfd);
  const bool died_at_start = pid > 0 && !child.has_begun;
  const bool has_no_clone3 = pid == -ENOSYS || pid == -EPERM;  // an old kernel, or seccomp
  if (!died_at_start && !has_no_clone3) return pid;
  // Kernels with the `kill_seq` of Linux 6.15 compare a wrong value: after a cgroup.kill every
  // child that starts in the cgroup dies before its first instruction.
  if (died_at_start) {
    reap_failed_start(pid, plan.ticket);
    ::close(pidfd);
  }
  cannot_start_in_cgroup_ = true;
  return run_child_then_join(child, cgroup, pidfd);
}

// For kernels that cannot start a child in the cgroup: the child writes itself into it.
int SpawnContext::run_child_then_join(ChildPlan& child, int cgroup, int& pidfd) {
  UniqueFd procs(::openat(cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC));
  if (!procs.is_open()) return -errno;
  child.cgroup_procs = procs.get();
  return clone_child(child, static_cast<char*>(stack_), kStackBytes, pidfd);
}

Result<Spawned> SpawnContext::spawn(const SpawnPlan& plan) {
  std::vector<char*> argv = pointers(plan.argv);
  std::vector<char*> environment = pointers(plan.environment);
  ChildPlan child;
  child.program = plan.program.c_str();
  child.argv = argv.data();
  child.environment = environment.data();
  child.stdio[0] = plan.in;
  child.stdio[1] = plan.out;
  child.stdio[2] = plan.err;
  child.parent = ::getpid();
  child.descriptors = plan.descriptors;
  child.signals = signals_.data();
  child.signal_count = signals_.size();
  child.ignored = plan.ignored.data();
  child.ignored_count = plan.ignored.size();
  if (plan.ticket != nullptr) {
    const StartTicket::Cells cells = plan.ticket->cells();
    child.child = cells.child;
    child.is_cancelled = cells.is_cancelled;
  }

  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (int cpu : plan.cpus) CPU_SET(static_cast<size_t>(cpu), &cpus);
  if (!plan.cpus.empty()) child.cpus = &cpus;

  int pidfd = -1;
  const Instant started_at = boot_now();
  const int pid = run_child(child, plan, pidfd);
  if (pid < 0) return clone_error(plan, -pid);
  UniqueFd handle(pidfd);
  if (child.failed == ChildStep::None) {
    return Spawned{pid, std::move(handle), started_at};
  }
  reap_failed_start(pid, plan.ticket);
  return step_error(plan, child.failed, child.error);
}

}  // namespace cpprun
