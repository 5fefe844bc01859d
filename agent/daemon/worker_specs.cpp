#include "agent/daemon/worker_specs.hpp"

#include <string_view>

#include "agent/daemon/stream_routes.hpp"

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

}  // namespace

std::vector<WorkerSpec> worker_specs(const AgentConfig& config,
                                     const control::RankAssignment& assignment,
                                     const LogFolder& folder, agent::LaunchContext place) {
  place.token = chain_token(config, place.token);
  std::vector<WorkerSpec> specs;
  for (int local_rank = 0; local_rank < config.workers.nproc; ++local_rank) {
    place.error_file = folder.stream_file(local_rank, "error.json");
    std::string prefix = agent::line_prefix(config, assignment, place, local_rank);
    StreamRoutes streams = route_streams(config.logs, folder, local_rank, prefix);
    WorkerSpec spec;
    spec.local_rank = LocalRank(local_rank);
    spec.rank = Rank(assignment.base_rank + local_rank);
    spec.argv = agent::worker_argv(config.workers, local_rank);
    if (config.debug_rank == spec.rank.value) spec.argv = agent::after_debugger(spec.argv);
    const auto& cpus = config.workers.cpus;
    if (!cpus.empty()) spec.cpus = cpus.at(static_cast<size_t>(local_rank));
    spec.environment = agent::worker_environment(config, assignment, place, local_rank);
    spec.out = std::move(streams.out);
    spec.err = std::move(streams.err);
    spec.error_file = place.error_file;
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace cpprun
