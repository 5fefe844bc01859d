// LogTailReporter: sends the last lines of a worker's log files to the coordinator while a user
// reads them in the dashboard. Otherwise it is idle and causes no wake-ups.
//
// Reads the files on a thread of its own, so that a disk that hangs does not block the loop.
// Thread: the loop's. Owner: WorkerReports.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "common/loop/background_work.hpp"
#include "common/loop/timer.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class LogTailReporter {
 public:
  struct Files {
    std::string out;  // empty: there is no file
    std::string err;
  };
  struct Callbacks {
    std::function<Files(int local_rank)> files;
    std::function<RoundNumber()> round;  // the newest round with this node
    std::function<void(const control::LogLines&)> send;
    int workers = 0;
  };

  LogTailReporter(boost::asio::io_context& loop, Callbacks callbacks)
      : callbacks_(std::move(callbacks)),
        background_(loop),
        timer_(loop, [this] { read_files(); }) {}

  void on_tail(const control::LogTailRequest& tail);
  // Forgets all requests: the next coordinator repeats those that it needs.
  void on_disconnected();

 private:
  void read_files();
  void on_read(const std::vector<control::LogLines>& lines_read);

  Callbacks callbacks_;
  BackgroundWork background_;
  Timer timer_;
  std::map<int64_t, Instant> watched_until_;  // by local rank
  std::map<int64_t, control::LogLines> last_sent_;
  bool is_reading_ = false;
};

// The folder above the folders of the workers' log files; "" without files.
std::string attempt_folder_of(const LogTailReporter::Files& files);

}  // namespace cpprun
