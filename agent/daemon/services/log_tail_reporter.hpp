// LogTailReporter: tells the coordinator the last lines of a worker's log files, while it asks for
// somebody who reads them in the dashboard. Otherwise it does nothing and wakes nobody.
//
// The files are read on a thread of their own: a disk that does not answer holds up this and
// nothing else. Thread: the loop's. Owner: the agent's daemon.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/daemon/loop_poster.hpp"
#include "agent/process/timer.hpp"
#include "common/ids.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class LogTailReporter {
 public:
  struct Files {
    std::string out;  // empty: it keeps none
    std::string err;
  };
  struct Callbacks {
    std::function<Files(int local_rank)> files;
    std::function<RoundNumber()> round;  // the newest that this node took part in
    std::function<void(const control::LogLines&)> tell;
    int workers = 0;
  };

  LogTailReporter(boost::asio::io_context& loop, Callbacks callbacks);
  ~LogTailReporter();
  LogTailReporter(const LogTailReporter&) = delete;

  void on_tail(const control::LogTailRequest& tail);
  // Who comes next asks anew.
  void on_disconnected();

 private:
  void look();
  void on_seen(int64_t number, const std::vector<control::LogLines>& seen);

  Callbacks callbacks_;
  const std::shared_ptr<LoopPoster> poster_;  // shared with threads, which may outlive us
  Timer timer_;
  std::map<int64_t, Instant> until_;  // by local rank
  std::map<int64_t, control::LogLines> told_;
  bool is_looking_ = false;
  int64_t looks_ = 0;
};

// The end of a log file, as far as the dashboard is told of it. Blocks as the file's disk does.

// At most limits::kTailLines, newest last, each cut at limits::kLineBytesReported. None if the file
// can't be read.
std::vector<std::string> last_lines_of(const std::string& path);

}  // namespace cpprun
