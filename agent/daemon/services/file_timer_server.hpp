// FileTimerServer: the server of torch's file timers (TORCHELASTIC_ENABLE_FILE_TIMER). Workers
// write their timers into a FIFO; a process whose timer is over gets the signal that it asked for.
//
// Thread: the loop's. Owner: the daemon. Only processes of a live worker's session are ever
// signalled, whatever stands in the FIFO. A signalled worker has failed like any other.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/core/file_timers.hpp"
#include "agent/process/timer.hpp"
#include "common/result.hpp"

namespace cpprun {

class FileTimerServer {
 public:
  struct Events {
    std::function<std::vector<int>()> workers;  // process ids of the live ones
    std::function<void(const std::string&)> on_warning;
  };

  FileTimerServer(boost::asio::io_context& loop, std::string path, Events events);
  ~FileTimerServer();
  FileTimerServer(const FileTimerServer&) = delete;

  // A new, empty FIFO, for a round that begins. Errors name the path.
  Status begin_round();
  void end_round();  // removes it

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
  std::shared_ptr<int> life_ =
      std::make_shared<int>();  // shared: handlers ask whether we still are
};

}  // namespace cpprun
