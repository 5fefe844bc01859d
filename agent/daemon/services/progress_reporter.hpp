// ProgressReporter: tells the coordinator how far the workers here are, while it watches for
// somebody who looks at the dashboard. Otherwise it does nothing and wakes nobody.
//
// It reads what workers wrote into their shared pages: workers notice nothing of it. Thread: the
// loop's. Owner: the agent's daemon.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <optional>
#include <vector>

#include "agent/process/process_host.hpp"
#include "common/ids.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class ProgressReporter {
 public:
  struct Callbacks {
    std::function<std::vector<LiveWorker>()> live;
    std::function<RoundNumber()> round;  // the newest that this node took part in
    std::function<void(const control::Progress&)> tell;
  };

  ProgressReporter(boost::asio::io_context& loop, Callbacks callbacks);

  void on_watch(const control::Watch& watch);
  // Who comes next asks anew.
  void on_disconnected();

 private:
  void look();

  Callbacks callbacks_;
  boost::asio::steady_timer timer_;
  bool is_ticking_ = false;
  Instant until_;
  std::optional<control::Progress> told_;
};

// What to tell of these workers; nothing if none of them sends heartbeats.
std::optional<control::Progress> progress_of(RoundNumber round,
                                             const std::vector<LiveWorker>& workers);

}  // namespace cpprun
