#include "launcher/cpprun/slurm_requeue.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "common/limits/agent.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/files.hpp"
#include "common/machine/reap.hpp"
#include "common/machine/start_program.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/text.hpp"
#include "launcher/options/cluster.hpp"

namespace cpprun {
namespace {

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
  const int status = reap(pid);
  return is_over ? std::optional(status) : std::nullopt;
}

// "": it was not printed in time.
std::string show_job(const std::string& job_id) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return "";
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const Result<pid_t> pid = start_program({"scontrol", "show", "job", job_id}, to.get());
  to.reset();
  if (!pid) return "";
  std::string text;
  const bool is_whole = read_until(from.get(), boot_now() + limits::kSchedulerTimeout,
                                   limits::kSchedulerAnswerBytes, text);
  if (!is_whole) ::kill(*pid, SIGKILL);
  return wait_for(*pid) == 0 && is_whole ? text : "";
}

// Slurm changes the list of a job that waits, not of one that runs: so this comes after the
// requeue.
void exclude_nodes(const std::string& job_id, const std::string& list,
                   const std::vector<std::string>& hosts) {
  const std::string names = text::join(hosts, ", ");
  const Result<pid_t> pid =
      start_program({"scontrol", "update", "job", job_id, "ExcNodeList=" + list});
  if (pid && wait_for(*pid) == 0) {
    return log::status("job " + job_id + " gets other nodes than " + names);
  }
  log::warning("scontrol could not exclude " + names +
               " from the requeued job: Slurm may give it these nodes again");
}

}  // namespace

void requeue_if_stopped(const ClusterConfig& cluster, int exit_code,
                        const std::vector<std::string>& excluded) {
  if (!wants_requeue(cluster, exit_code)) return;
  // Slurm's SIGTERM may reach this node after others have stopped the job, and the requeue ends
  // this step with SIGTERM: it would end scontrol before it has answered. The programs that are
  // started here inherit this.
  std::signal(SIGTERM, SIG_IGN);
  const std::string shown = show_job(cluster.job_id);
  if (is_ended_by_slurm(shown)) {
    return log::status("Slurm ends job " + cluster.job_id +
                       " by itself (scancel, or a preemption), so it is not asked to requeue it");
  }
  const std::string list = excluded.empty() ? "" : exclusion_list(shown, excluded);
  const Result<pid_t> pid = start_program({"scontrol", "requeue", cluster.job_id});
  if (!pid) {
    return log::warning(pid.error().text +
                        "; the job is not requeued (RequeueExit=75 in slurm.conf needs no "
                        "scontrol)");
  }
  const std::string what = "scontrol requeue " + cluster.job_id;
  const std::optional<int> status = wait_for(*pid);
  if (!status)
    return log::warning(what + " did not answer in time; see squeue whether it was done");
  if (*status == 0) {
    log::status("job " + cluster.job_id + " is requeued");
    if (!excluded.empty()) exclude_nodes(cluster.job_id, list, excluded);
    return;
  }
  log::warning(what + " was refused (its message is above); the job is not requeued");
}

}  // namespace cpprun
