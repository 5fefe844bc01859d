#include "agent/daemon/preload.hpp"

#include <sys/resource.h>

#include "agent/core/worker_environment.hpp"
#include "common/log/log.hpp"

namespace cpprun {
namespace {

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

}  // namespace

std::unique_ptr<Preloader> make_preloader(boost::asio::io_context& loop, const AgentConfig& config,
                                          const std::string& token) {
  const PreloadConfig::Mode mode = config.workers.preload.mode;
  const bool is_used = mode == PreloadConfig::Mode::Auto || mode == PreloadConfig::Mode::List;
  if (!is_used) return nullptr;
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  return std::make_unique<Preloader>(loop, preload_plan(config, token), descriptors,
                                     [](const std::string& text) { log::warning(text); });
}

WorkerFork worker_fork(const AgentConfig& config, Preloader* preloader, size_t workers) {
  if (preloader != nullptr) return preloader->worker_fork(workers);
  if (config.workers.preload.mode == PreloadConfig::Mode::Off) return nullptr;
  return [](const SpawnPlan&) { return ForkAttempt{{}, SpawnReason::NotPython}; };
}

WorkerStarts worker_starts(const ProcessHost& host, const Preloader* preloader) {
  WorkerStarts starts = host.starts();
  if (preloader != nullptr) preloader->report(starts);
  return starts;
}

}  // namespace cpprun
