// NodeChecker: runs --node-check on a thread of its own, so that the loop never waits for it.
// Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>

#include "agent/core/config.hpp"
#include "common/loop/background_work.hpp"
#include "common/time.hpp"

namespace cpprun {

class NodeChecker {
 public:
  // `why`: empty: the check has passed.
  using Done = std::function<void(const std::string& why, Duration took)>;

  // `config` must outlive this object.
  NodeChecker(boost::asio::io_context& loop, const AgentConfig& config, const std::string& token,
              Done done);

  // Requires: --node-check is given, and no check runs.
  void run();

 private:
  const AgentConfig& config_;
  const std::string token_;
  const Done done_;
  BackgroundWork background_;
};

}  // namespace cpprun
