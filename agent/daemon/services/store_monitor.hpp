// StoreMonitor: warns once per round if no process serves MASTER_PORT after `timeout` and a
// program tries to connect to it. Worker 0 must serve it; a program whose workers are all clients
// would wait silently until torch's timeout.
//
// Runs on the node of worker 0. Programs without torch.distributed never connect and cause no
// warning. Thread: the loop's. Owner: the daemon.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "common/loop/timer.hpp"
#include "common/time.hpp"

namespace cpprun {

class StoreMonitor {
 public:
  // `timeout`: how long worker 0 may take to listen.
  StoreMonitor(boost::asio::io_context& loop, Duration timeout,
               std::function<void(const std::string&)> warn)
      : timeout_(timeout),
        warn_(std::move(warn)),
        timer_(loop, [this] { check(); }),
        closed_sockets_(loop) {}
  StoreMonitor(const StoreMonitor&) = delete;

  void begin_round(uint16_t port);
  void end_round();

 private:
  void check();
  void wait_for_refusal();
  bool has_refusal();
  void warn_unserved();

  Duration timeout_;
  std::function<void(const std::string&)> warn_;
  Timer timer_;
  boost::asio::posix::stream_descriptor closed_sockets_;
  uint16_t port_ = 0;
};

}  // namespace cpprun
