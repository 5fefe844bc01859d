// FileTimerServer: the server of torch's file timers (TORCHELASTIC_ENABLE_FILE_TIMER). Workers
// write timers into a FIFO. When a timer expires, the server sends the requested signal to the
// process that wrote it; a worker that dies of it has failed like any other.
//
// Thread: the loop's. Owner: the daemon. The FIFO is untrusted: the server signals only processes
// in the session of a live worker.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <string>
#include <vector>

#include "agent/core/file_timers.hpp"
#include "common/lifetime.hpp"
#include "common/loop/timer.hpp"
#include "common/result.hpp"

namespace cpprun {

class FileTimerServer {
 public:
  struct Events {
    std::function<std::vector<int>()> workers;  // process ids of the live workers
    std::function<void(const std::string&)> on_warning;
  };

  FileTimerServer(boost::asio::io_context& loop, std::string path, Events events);
  ~FileTimerServer();
  FileTimerServer(const FileTimerServer&) = delete;

  // Creates an empty FIFO for a new round. Errors name the path.
  Status begin_round();
  void end_round();  // removes the FIFO

 private:
  void read_more();
  void take_lines();
  void on_time();
  void arm();

  std::string path_;
  Events events_;
  boost::asio::posix::stream_descriptor fifo_;
  Timer timer_;
  agent::FileTimers timers_;
  std::string text_;
  Lifetime lifetime_;
};

}  // namespace cpprun
