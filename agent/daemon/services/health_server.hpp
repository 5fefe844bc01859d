// HealthServer: the port that TORCHELASTIC_HEALTH_CHECK_PORT names, for probes of schedulers. Any
// HTTP request is answered with 200 as long as the agent's loop runs; a frozen agent answers
// nobody, which is what a probe looks for. torchrun reads the variable too, but its server opens no
// port.
//
// Not the rendezvous port, which has /healthz and more (docs/protocol.md). Says nothing of the job:
// workers that are being restarted are no reason to kill the agent. Thread: the loop's. Owner: the
// daemon.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>

#include "common/result.hpp"

namespace cpprun {

class HealthServer {
 public:
  explicit HealthServer(boost::asio::io_context& loop) : acceptor_(loop), retry_(loop) {}
  HealthServer(const HealthServer&) = delete;

  // Listens on all addresses. Errors name the port; nothing else is affected by one.
  Status open(uint16_t port);

 private:
  class Probe;

  void accept();
  void accept_later();

  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer retry_;
  // Shared with the probes, which may outlive this: how many there are.
  std::shared_ptr<size_t> probes_ = std::make_shared<size_t>(0);
};

}  // namespace cpprun
