#include "agent/daemon/round_starter.hpp"

#include <algorithm>
#include <utility>

#include "agent/core/worker_environment.hpp"
#include "agent/daemon/worker_specs.hpp"
#include "common/log/log.hpp"

namespace cpprun {

Status RoundStarter::start(const control::RankAssignment& assignment, const Endpoint& store,
                           FileTimerServer* timers) {
  const int attempt = static_cast<int>(agent::restarts_of(assignment));
  report_missing_files(
      folder_.begin_attempt(attempt, assignment.round.value, config_.workers.nproc));
  agent::LaunchContext place;
  place.store = to_string(store);
  place.token = token_;
  place.agent = host_.channel_name();
  place.host_name = host_name_;
  const std::vector<WorkerSpec> specs =
      worker_specs(config_, assignment, folder_, std::move(place));
  if (timers != nullptr) {
    if (Status open = timers->begin_round(); !open) return open;
  }
  if (!host_.is_idle()) {
    return Error{ErrorKind::System, "processes of a start that failed have not ended yet"};
  }
  if (Status started = host_.start(specs); !started) return started;
  report_debugged_worker(specs, assignment.world_size);
  return {};
}

// A full disk must not stop the job. Logs the problem once until a later attempt has its files.
void RoundStarter::report_missing_files(const Status& made) {
  if (!std::exchange(has_no_files_, !made.ok()) && !made.ok()) {
    log::warning(made.error().text +
                 "; this round's workers keep no log and error files, what they say goes to the "
                 "console");
  }
}

void RoundStarter::report_debugged_worker(const std::vector<WorkerSpec>& specs,
                                          int64_t world_size) const {
  if (config_.debug_rank && *config_.debug_rank >= world_size) {
    log::warning("--debug-rank=" + std::to_string(*config_.debug_rank) +
                 ": no worker waits for a debugger, since ranks go from 0 to " +
                 std::to_string(world_size - 1) + "; and nothing counts as a hang");
  }
  const std::vector<int> pids = host_.pids();
  for (size_t i = 0; i < std::min(specs.size(), pids.size()); ++i) {
    if (!config_.debug_rank || specs[i].rank.value != *config_.debug_rank) continue;
    const std::string pid = std::to_string(pids[i]);
    log::warning("rank " + std::to_string(*config_.debug_rank) + " (pid " + pid +
                 ") waits for a debugger before its program begins: gdb -p " + pid +
                 "; without one, kill -CONT " + pid + " lets it begin");
  }
}

}  // namespace cpprun
