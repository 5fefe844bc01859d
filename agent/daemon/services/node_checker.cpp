#include "agent/daemon/services/node_checker.hpp"

#include <utility>

#include "agent/core/worker_environment.hpp"
#include "agent/process/diagnostics/user_command.hpp"
#include "common/machine/clock.hpp"

namespace cpprun {

NodeChecker::NodeChecker(boost::asio::io_context& loop, const AgentConfig& config,
                         const std::string& token, Done done)
    : config_(config),
      token_(agent::chain_token(config, token)),
      done_(std::move(done)),
      background_(loop) {}

void NodeChecker::run() {
  const Instant begun = boot_now();
  background_.run_or(
      [check = config_.node_check, token = token_] {
        return run_user_command(check.command, token, check.timeout);
      },
      [this, begun](const std::string& why) { done_(why, boot_now() - begun); },
      [](const Status& failed) { return failed.error().text; });
}

}  // namespace cpprun
