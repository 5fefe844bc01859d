#include "agent/daemon/preload_plan.hpp"

#include "agent/core/worker_environment.hpp"

namespace cpprun {

PreloadPlan preload_plan(const AgentConfig& config, const std::string& token) {
  const WorkerConfig& workers = config.workers;
  PreloadPlan plan;
  // A script's name with ${local_rank} stands for that of the first worker.
  plan.command = agent::worker_argv(workers, 0);
  for (const std::string& word : plan.command) plan.argument_bytes += word.size() + 1;
  plan.command.resize(workers.program.size());
  constexpr size_t kRanksLonger = 1024;  // where arguments hold ${local_rank}
  plan.argument_bytes += kRanksLonger;
  plan.environment = agent::common_environment(config, agent::chain_token(config, token));
  plan.modules = workers.preload.modules;
  plan.is_auto = workers.preload.mode == PreloadConfig::Mode::Auto;
  return plan;
}

}  // namespace cpprun
