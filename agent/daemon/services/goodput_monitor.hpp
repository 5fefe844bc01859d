// GoodputMonitor: reads the heartbeats of this node's workers for the goodput account, sends the
// time that the job has spent to the coordinator, for /metrics, and decides when to keep it.
//
// It reads often while workers repeat steps, and once a minute while they train; before the first
// step, and with programs that report no steps, it is idle. Thread: the loop's. Owner: the daemon.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <vector>

#include "agent/process/process_host.hpp"
#include "common/goodput/goodput_account.hpp"
#include "common/loop/timer.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class GoodputMonitor {
 public:
  struct Callbacks {
    std::function<std::vector<LiveWorker>()> live;
    std::function<bool()> sends;  // this node reports for the job
    std::function<void(const control::TimeSpent&)> send;
    std::function<void()> keep;  // as often as send, on every node
  };

  // `account` outlives this.
  GoodputMonitor(boost::asio::io_context& loop, GoodputAccount& account, Callbacks callbacks);

  void on_stepped();                         // a worker has finished its first step
  void on_beat(const Heartbeat& heartbeat);  // the last one of a worker that has ended
  void sample();                             // now; before the workers are stopped
  void on_round_over();                      // the workers are gone

 private:
  void tick();
  void report();

  GoodputAccount& account_;
  const Callbacks callbacks_;
  Timer timer_;
  bool is_ticking_ = false;  // since the first step of this round
  Instant reported_at_;
};

}  // namespace cpprun
