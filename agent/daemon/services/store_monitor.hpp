// StoreMonitor: warns once in a round, when a minute has passed and a program here tries in vain to
// connect to MASTER_PORT, that nobody serves it. Worker 0 has to, and a program whose workers are
// all clients waits without a word until torch's timeout.
//
// Runs on the node of worker 0. A program without torch.distributed never connects, so nothing is
// said of it. Thread: the loop's. Owner: the daemon.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "common/time.hpp"

namespace cpprun {

class StoreMonitor {
 public:
  // `patience`: how long worker 0 may take to listen.
  StoreMonitor(boost::asio::io_context& loop, Duration patience,
               std::function<void(const std::string&)> warn)
      : patience_(patience), warn_(std::move(warn)), timer_(loop), closed_sockets_(loop) {}
  StoreMonitor(const StoreMonitor&) = delete;

  void begin_round(uint16_t port);
  void end_round();

 private:
  void look();
  void wait_for_refusal();
  bool has_refusal();
  void say();

  Duration patience_;
  std::function<void(const std::string&)> warn_;
  boost::asio::steady_timer timer_;
  boost::asio::posix::stream_descriptor closed_sockets_;
  uint16_t port_ = 0;
};

}  // namespace cpprun
