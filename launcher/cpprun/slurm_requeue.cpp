#include "launcher/cpprun/slurm_requeue.hpp"

#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "common/limits/agent.hpp"
#include "common/log/log.hpp"
#include "common/machine/unique_fd.hpp"
#include "launcher/options/cluster.hpp"

namespace cpprun {
namespace {

// This thread may block SIGTERM; the program gets an empty mask.
int spawn_program(std::vector<std::string> command, pid_t& pid) {
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int error = ::posix_spawnp(&pid, argv[0], nullptr, &attributes, argv.data(), __environ);
  ::posix_spawnattr_destroy(&attributes);
  return error;
}

// The wait status; nullopt if the program had to be killed at the time limit.
std::optional<int> wait_for(pid_t pid) {
  using namespace std::chrono;
  UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const auto until = steady_clock::now() + limits::kSchedulerTimeout;
  bool is_over = false;
  while (!is_over && handle.is_open()) {
    const auto left = ceil<milliseconds>(until - steady_clock::now()).count();
    pollfd watched{handle.get(), POLLIN, 0};
    const int ready = left > 0 ? ::poll(&watched, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    is_over = ready > 0;
    if (!is_over) break;
  }
  if (!is_over) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return is_over ? std::optional(status) : std::nullopt;
}

}  // namespace

void requeue_if_stopped(const ClusterConfig& cluster, int exit_code) {
  if (!wants_requeue(cluster, exit_code)) return;
  const std::string what = "scontrol requeue " + cluster.job_id;
  pid_t pid = -1;
  if (const int error = spawn_program({"scontrol", "requeue", cluster.job_id}, pid); error != 0) {
    return log::warning(
        what + " could not be started: " + std::strerror(error) +
        "; the job is not requeued (RequeueExit=75 in slurm.conf needs no scontrol)");
  }
  const std::optional<int> status = wait_for(pid);
  if (!status)
    return log::warning(what + " did not answer in time; see squeue whether it was done");
  if (*status == 0) return log::status("job " + cluster.job_id + " is requeued");
  log::warning(what + " was refused (its message is above); the job is not requeued");
}

}  // namespace cpprun
