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
  if (config.workers.preload.mode == PreloadConfig::Mode::Off) return nullptr;
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  return std::make_unique<Preloader>(loop, preload_plan(config, token), descriptors,
                                     [](const std::string& text) { log::warning(text); });
}

control::WorkerStarts worker_starts(const ProcessHost& host, const Preloader* preloader) {
  control::WorkerStarts starts;
  starts.forked = host.forked();
  starts.spawned = host.spawned();
  if (preloader == nullptr || !preloader->loaded()) return starts;
  starts.import_time = preloader->loaded()->import_time;
  starts.shared_bytes = preloader->loaded()->private_bytes;
  return starts;
}

}  // namespace cpprun
