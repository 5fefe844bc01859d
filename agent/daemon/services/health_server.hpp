// HealthServer: answers health probes of schedulers at the port TORCHELASTIC_HEALTH_CHECK_PORT. Any
// HTTP request gets a 200 as long as the agent's loop runs; a frozen agent does not answer, and the
// probe fails. torchrun reads the variable too, but its server opens no port.
//
// Not the rendezvous port, which has /healthz (docs/protocol.md). The reply does not depend on the
// job: a scheduler must not kill the agent while it restarts workers. Thread: the loop's. Owner:
// the daemon.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>

#include "common/loop/timer.hpp"

namespace cpprun {

class HealthServer {
 public:
  explicit HealthServer(boost::asio::io_context& loop)
      : acceptor_(loop), retry_(loop, [this] { accept(); }) {}
  HealthServer(const HealthServer&) = delete;

  // Listens on all addresses. Another agent on this machine may have the port; then a warning names
  // it, and the job runs without health probes.
  void try_open(uint16_t port);

 private:
  class Probe;

  void accept();

  boost::asio::ip::tcp::acceptor acceptor_;
  Timer retry_;
  // Number of open probes; shared with them, because they may outlive this object.
  std::shared_ptr<size_t> probes_ = std::make_shared<size_t>(0);
};

}  // namespace cpprun
