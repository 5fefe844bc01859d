// FileTimerServer: the server of torch's file timers (TORCHELASTIC_ENABLE_FILE_TIMER). Workers
// write timers into a FIFO. When a timer expires, the server sends the requested signal to the
// process that wrote it; a worker that dies of it has failed like any other.
//
// Thread: the loop's; the I/O thread makes, opens and removes the FIFO. Owner: the daemon. The FIFO
// is untrusted: the server signals only processes in the session of a live worker.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/core/file_timers.hpp"
#include "common/lifetime.hpp"
#include "common/loop/loop_poster.hpp"
#include "common/loop/timer.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/thread/io_thread.hpp"

namespace cpprun {

class FileTimerServer {
 public:
  struct Events {
    std::function<std::vector<int>()> workers;  // process ids of the live workers
    std::function<void(const std::string&)> on_warning;
  };

  // `io` must outlive this object.
  FileTimerServer(boost::asio::io_context& loop, IoThread& io, std::string path, Events events);
  ~FileTimerServer();
  FileTimerServer(const FileTimerServer&) = delete;

  // Makes an empty FIFO for a new round; `on_ready` follows, after limits::kRoundFilesTimeout at
  // the latest. Replaces an earlier call, whose answer does not come any more.
  void prepare(std::function<void()> on_ready);
  // Uses it. Errors name the path.
  Status begin_round();
  void end_round();  // removes the FIFO

 private:
  void on_made(Result<UniqueFd> made);
  void read_more();
  void take_lines();
  void on_time();
  void arm();

  IoThread& io_;
  const std::string path_;
  Events events_;
  std::function<void()> on_ready_;  // of prepare(), until its answer
  uint64_t number_ = 0;             // of the newest prepare()
  Status status_;                   // of its FIFO
  Timer late_timer_;
  boost::asio::posix::stream_descriptor fifo_;
  Timer timer_;
  agent::FileTimers timers_;
  std::string text_;
  Lifetime lifetime_;
  const std::shared_ptr<LoopPoster> poster_;  // shared with the tasks
};

}  // namespace cpprun
