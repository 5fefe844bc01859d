// ProgressReporter: sends the progress of this node's workers to the coordinator while the
// dashboard has readers, and once at the end of each round. Otherwise it causes no wake-ups.
//
// Reads the workers' progress pages, without any work for the workers. Thread: the loop's. Owner:
// WorkerReports.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <vector>

#include "agent/process/process_host.hpp"
#include "common/ids.hpp"
#include "common/loop/timer.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class ProgressReporter {
 public:
  struct Callbacks {
    // The newest heartbeats by local rank, also of workers that have ended; unset: none was sent.
    std::function<std::vector<std::optional<Heartbeat>>()> heartbeats;
    std::function<RoundNumber()> round;  // the newest round with this node
    std::function<void(const control::Progress&)> send;
  };

  ProgressReporter(boost::asio::io_context& loop, Callbacks callbacks);

  void on_watch(const control::Watch& watch);
  // All workers of the round have ended, and their last heartbeats can still be read.
  void on_round_ended() { send_if_new(); }
  // Stops reporting: the next coordinator sends a new Watch if it needs reports.
  void on_disconnected();

 private:
  void report();
  void send_if_new();

  Callbacks callbacks_;
  Timer timer_;
  bool is_ticking_ = false;
  Instant watched_until_;
  std::optional<control::Progress> last_sent_;
};

// The report about these workers; nullopt if none of them writes heartbeats.
std::optional<control::Progress> progress_of(RoundNumber round,
                                             const std::vector<std::optional<Heartbeat>>& workers);

}  // namespace cpprun
