#include "agent/daemon/scheduler_exit_code.hpp"

#include <csignal>
#include <string>

#include "common/exit_code.hpp"
#include "common/log/log.hpp"

namespace cpprun {

int code_for_scheduler(const ClusterConfig& cluster, const agent::Finish& finish,
                       bool others_continue, int code) {
  const bool is_under_slurm = cluster.kind == ClusterConfig::Kind::Slurm;
  const bool is_stopped = code == kStoppedResumable || code == kSignalBase + SIGTERM;
  const bool has_left = others_continue && !finish.job_result && is_stopped;
  if (!is_under_slurm || !has_left) return code;
  log::warning("exit code 0, not " + std::to_string(code) + ": the other nodes continue the job");
  return kSuccess;
}

}  // namespace cpprun
