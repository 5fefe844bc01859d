#include "agent/daemon/round_starter.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/core/line_prefix.hpp"
#include "agent/core/worker_environment.hpp"
#include "agent/daemon/events/trace_config.hpp"
#include "agent/daemon/stream_routes.hpp"
#include "common/log/log.hpp"
#include "common/machine/identity.hpp"

namespace cpprun {
namespace {

// With traces the workers' spans belong to the round; else they keep what the launcher got.
void set_traceparent(std::vector<std::string>& variables, const std::vector<std::string>& launcher,
                     const control::RankAssignment& assignment) {
  const Result<std::optional<TraceConfig>> traces = trace_config(launcher);
  if (!traces || !*traces || assignment.job_key.empty()) return;
  constexpr std::string_view kName = "TRACEPARENT=";
  std::erase_if(variables, [&](const std::string& entry) { return entry.starts_with(kName); });
  const TraceIds ids((*traces)->parent, assignment.job_key);
  variables.push_back(std::string(kName) + ids.traceparent(assignment.round));
}

}  // namespace

Status RoundStarter::start(const control::RankAssignment& assignment, const Endpoint& store,
                           FileTimerServer* timers) {
  report_missing_files(files_.made());
  if (Status opened = files_.opened(); !opened) return opened;
  const std::vector<WorkerSpec> specs = worker_specs(assignment, store);
  if (timers != nullptr) {
    if (Status open = timers->begin_round(); !open) return open;
  }
  host_.start(specs, files_.files());
  return {};
}

void RoundStarter::on_started(const control::RankAssignment& assignment) {
  files_.release();
  report_debugged_worker(assignment);
}

std::vector<WorkerSpec> RoundStarter::worker_specs(const control::RankAssignment& assignment,
                                                   const Endpoint& store) const {
  agent::LaunchContext place;
  place.store = to_string(store);
  place.token = agent::chain_token(config_, token_);
  place.agent = host_.channel_name();
  place.host_name = own_host_name();
  std::vector<WorkerSpec> specs;
  for (int local_rank = 0; local_rank < config_.workers.nproc; ++local_rank) {
    const LogFolder& folder = files_.folder();
    place.error_file = folder.stream_file(local_rank, "error.json");
    std::string prefix = agent::line_prefix(config_, assignment, place, local_rank);
    StreamRoutes streams = route_streams(config_.logs, folder, local_rank, prefix);
    WorkerSpec& spec = specs.emplace_back();
    spec.local_rank = LocalRank(local_rank);
    spec.rank = Rank(assignment.base_rank + local_rank);
    spec.argv = agent::worker_argv(config_.workers, local_rank);
    if (config_.debug_rank == spec.rank.value) spec.argv = agent::after_debugger(spec.argv);
    // Slurm sends them to every process of the step; the workers are to get SIGTERM instead.
    spec.ignored = config_.cluster.stop_signals;
    const auto& cpus = config_.workers.cpus;
    if (!cpus.empty()) spec.cpus = cpus.at(static_cast<size_t>(local_rank));
    spec.environment = agent::worker_environment(config_, assignment, place, local_rank);
    set_traceparent(spec.environment, config_.environment, assignment);
    spec.round_variables = agent::round_variables(config_, assignment, place, local_rank);
    spec.out = std::move(streams.out);
    spec.err = std::move(streams.err);
    spec.error_file = place.error_file;
  }
  return specs;
}

// A full disk must not stop the job. Logs the problem once until a later attempt has its files.
void RoundStarter::report_missing_files(const Status& made) {
  if (!std::exchange(has_no_files_, !made.ok()) && !made.ok()) {
    log::warning(made.error().text +
                 "; this round's workers keep no log and error files, their output goes to the "
                 "console only");
  }
}

void RoundStarter::report_debugged_worker(const control::RankAssignment& assignment) const {
  if (config_.debug_rank && *config_.debug_rank >= assignment.world_size) {
    log::warning("--debug-rank=" + std::to_string(*config_.debug_rank) +
                 ": no worker waits for a debugger, since ranks go from 0 to " +
                 std::to_string(assignment.world_size - 1) + "; and nothing counts as a hang");
  }
  for (const LiveWorker& worker : host_.live()) {
    if (!config_.debug_rank || worker.rank.value != *config_.debug_rank) continue;
    const std::string pid = std::to_string(worker.pid);
    log::warning("rank " + std::to_string(*config_.debug_rank) + " (pid " + pid +
                 ") waits for a debugger before its program begins: gdb -p " + pid +
                 "; without one, kill -CONT " + pid + " lets it begin");
  }
}

}  // namespace cpprun
