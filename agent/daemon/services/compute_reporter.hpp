// ComputeReporter: sends the compute times of this node's workers to the coordinator, which finds
// slow ranks. It starts at the first step of a round, and while no worker reports a compute time it
// looks once a minute. Thread: the loop's. Owner: WorkerReports.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <vector>

#include "common/heartbeat.hpp"
#include "common/ids.hpp"
#include "common/loop/timer.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// The sums of one worker at the last report.
struct ComputeSum {
  Duration computed{};
  int64_t steps = 0;
};

class ComputeReporter {
 public:
  struct Callbacks {
    // The newest heartbeats by local rank.
    std::function<std::vector<std::optional<Heartbeat>>()> heartbeats;
    std::function<RoundNumber()> round;  // the newest round with this node
    std::function<void(const control::ComputeTimes&)> send;
  };

  ComputeReporter(boost::asio::io_context& loop, Callbacks callbacks)
      : callbacks_(std::move(callbacks)), timer_(loop, [this] { report(); }) {}

  void on_stepped();      // a worker has finished its first step of the round
  void on_round_ended();  // the workers' sums begin anew
  void set_wanted(bool is_wanted) { is_wanted_ = is_wanted; }  // by the connected coordinator

 private:
  void report();

  Callbacks callbacks_;
  Timer timer_;
  bool is_wanted_ = false;
  std::vector<ComputeSum> last_;
};

// The report of the steps since `last`, which becomes the newest sums; nullopt: there were none.
std::optional<control::ComputeTimes> compute_times_of(
    RoundNumber round, const std::vector<std::optional<Heartbeat>>& workers,
    std::vector<ComputeSum>& last);

}  // namespace cpprun
