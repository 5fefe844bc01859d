#include "agent/daemon/round_starter.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "agent/core/line_prefix.hpp"
#include "agent/core/worker_environment.hpp"
#include "common/log/log.hpp"

namespace cpprun {
namespace {

// Workers of a cpprun that runs inside a worker of another cpprun carry the tokens of both, so that
// both can find them.
std::string chain_token(const AgentConfig& config, const std::string& own) {
  constexpr std::string_view kName = "CPPRUN_TOKEN=";
  constexpr size_t kChainMax = 512;
  for (const std::string& entry : config.environment) {
    if (entry.starts_with(kName) && entry.size() < kChainMax) {
      return entry.substr(kName.size()) + "." + own;
    }
  }
  return own;
}

struct Routing {
  bool is_redirected = false;
  bool is_teed = false;
  bool is_shown = true;  // passes --local-ranks-filter
  bool is_lost = false;  // the log folder could not be created
};

StreamRoute plan(Routing routing, std::string file, const std::string& prefix,
                 const std::vector<std::string>& filters, std::string duplicate_file) {
  StreamRoute plan;
  if (routing.is_redirected || routing.is_teed) plan.file = std::move(file);
  // Output without a file goes to the console, even of filtered ranks: it must not be lost.
  const bool has_file = routing.is_redirected && !routing.is_lost;
  plan.to_console = (routing.is_shown && (routing.is_teed || !has_file)) ||
                    (routing.is_lost && (routing.is_redirected || routing.is_teed));
  if (routing.is_teed) {
    plan.prefix = prefix;
    plan.duplicate_filters = filters;
    if (!filters.empty() && !routing.is_lost) plan.duplicate_file = std::move(duplicate_file);
  }
  return plan;
}

}  // namespace

Status RoundStarter::start(const control::RankAssignment& assignment, const Endpoint& store,
                           FileTimerServer* timers) {
  const int attempt = static_cast<int>(agent::restarts_of(assignment));
  report_missing_files(
      folder_.begin_attempt(attempt, assignment.round.value, config_.workers.nproc));
  const std::vector<WorkerSpec> specs = worker_specs(assignment, store);
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

std::vector<WorkerSpec> RoundStarter::worker_specs(const control::RankAssignment& assignment,
                                                   const Endpoint& store) const {
  agent::LaunchContext place;
  place.store = to_string(store);
  place.token = chain_token(config_, token_);
  place.agent = host_.channel_name();
  place.host_name = host_name_;
  std::vector<WorkerSpec> specs;
  for (int local_rank = 0; local_rank < config_.workers.nproc; ++local_rank) {
    place.error_file = folder_.stream_file(local_rank, "error.json");
    std::string prefix = agent::line_prefix(config_, assignment, place, local_rank);
    StreamRoutes streams = route_streams(config_.logs, folder_, local_rank, prefix);
    WorkerSpec& spec = specs.emplace_back();
    spec.local_rank = LocalRank(local_rank);
    spec.rank = Rank(assignment.base_rank + local_rank);
    spec.argv = agent::worker_argv(config_.workers, local_rank);
    if (config_.debug_rank == spec.rank.value) spec.argv = agent::after_debugger(spec.argv);
    const auto& cpus = config_.workers.cpus;
    if (!cpus.empty()) spec.cpus = cpus.at(static_cast<size_t>(local_rank));
    spec.environment = agent::worker_environment(config_, assignment, place, local_rank);
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

StreamRoutes route_streams(const LogConfig& config, const LogFolder& folder, int local_rank,
                           const std::string& prefix) {
  StreamBits redirects = config.redirects.at(static_cast<size_t>(local_rank));
  StreamBits tee = config.tee.at(static_cast<size_t>(local_rank));
  bool is_shown = !config.local_ranks_filter || config.local_ranks_filter->contains(local_rank);
  const bool is_lost = folder.lacks_attempt();
  StreamRoutes plans;
  plans.out = plan({redirects.has_out(), tee.has_out(), is_shown, is_lost},
                   folder.stream_file(local_rank, "stdout.log"), prefix,
                   config.duplicate_stdout_filters, folder.attempt_file("filtered_stdout.log"));
  plans.err = plan({redirects.has_err(), tee.has_err(), is_shown, is_lost},
                   folder.stream_file(local_rank, "stderr.log"), prefix,
                   config.duplicate_stderr_filters, folder.attempt_file("filtered_stderr.log"));
  return plans;
}

}  // namespace cpprun
