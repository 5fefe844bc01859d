// LogFileServer: reads parts of this node's log files for `cpprunctl logs --all-nodes`. The reader
// keeps the positions and asks again, so this object keeps nothing for it but the time of its last
// request. Without a reader it is idle and causes no wake-ups.
//
// Reads the files on threads of their own, so that a disk that hangs does not block the loop.
// Thread: the loop's. Owner: the daemon.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include "agent/daemon/services/log_tail_reporter.hpp"
#include "common/ids.hpp"
#include "common/loop/background_work.hpp"
#include "common/loop/timer.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// The log files of one round.
struct RoundLogs {
  RoundNumber round;
  int64_t base_rank = 0;
  int64_t workers = 0;
  std::string folder{};   // of the attempt; empty: the job keeps no log files
  bool is_ended = false;  // all workers have ended and written all
};

class LogFileServer {
 public:
  struct Callbacks {
    std::function<LogTailReporter::Files(int local_rank)> files;  // of the newest round
    std::function<void(const control::LogReply&)> send;
    int workers = 0;
  };

  LogFileServer(boost::asio::io_context& loop, Callbacks callbacks)
      : callbacks_(std::move(callbacks)), background_(loop), timer_(loop, [this] { release(); }) {}

  void on_workers_start(RoundNumber round, int64_t base_rank);
  void on_round_ended();
  void on_request(const control::LogRequest& request);
  // The job is over. Calls `then` when each active reader has the last lines and knows that, after
  // limits::kLogEndWait at the latest; at once without active readers. Later no line can be read.
  void when_read(std::function<void()> then);
  // Whoever waits in when_read() waits no longer.
  void on_disconnected();

 private:
  struct Reader {
    Instant heard_at;
    bool has_end = false;  // the last lines, and that the job is over
  };

  const RoundLogs* round_of(const control::LogRequest& request) const;
  void on_read(const control::LogRequest& request, const control::LogReply& reply);
  bool is_all_read() const;
  void release();

  const Callbacks callbacks_;
  BackgroundWork background_;
  Timer timer_;
  std::deque<RoundLogs> rounds_;       // oldest first
  std::map<int64_t, Reader> readers_;  // by their number at the coordinator
  size_t reads_ = 0;                   // under way
  std::function<void()> waits_;        // when_read()
};

// Reads what `request` asks of the files of `logs`, as much as fits into a reply. Blocks.
control::LogReply read_log_files(const RoundLogs& logs, const control::LogRequest& request);

}  // namespace cpprun
