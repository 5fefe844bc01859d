// HangMonitor: looks at the workers of a round now and then, and when they hang collects evidence
// on a thread of its own before it says so. What counts as a hang: agent/core/hang_watch.hpp.
//
// Thread: the loop's. Owner: the daemon. Callbacks are never called after the end of this object.
// Costs nothing with --hang-timeout=off; else one look per HangWatch::next_look().
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/core/hang_watch.hpp"
#include "agent/daemon/loop_poster.hpp"
#include "agent/process/process_host.hpp"
#include "agent/process/timer.hpp"
#include "common/failure/worker_exit.hpp"

namespace cpprun {

class HangMonitor {
 public:
  struct Events {
    std::function<std::vector<StackTarget>()> look;  // at the live workers
    // It hangs, and what was seen of all is told. `hung` is as Agent::on_hang() takes it.
    std::function<void(const WorkerExit& hung)> on_hang;
    std::function<void(const std::string&)> on_warning;  // for people; several lines maybe
  };

  HangMonitor(boost::asio::io_context& loop, HangConfig config, Events events);
  ~HangMonitor();
  HangMonitor(const HangMonitor&) = delete;

  // The workers of a round have started. The stacks of a hang are written to `report` ("": nowhere)
  void begin_round(const std::string& report);
  // They are being stopped, or have ended: what is being collected goes nowhere.
  void end_round();
  void on_stopped();  // by a signal: looks at once

 private:
  struct Found;

  void look();
  void collect(const agent::Hang& hang, std::vector<StackTarget> witnesses);
  void on_evidence(const Found& found);
  bool goes_on(const WorkerObservation& before);

  Events events_;
  agent::HangWatch watch_;
  Timer timer_;
  std::string report_;
  uint64_t round_ = 0;  // a number of our own: evidence of an older one is dropped
  const std::shared_ptr<LoopPoster> poster_;
};

}  // namespace cpprun
