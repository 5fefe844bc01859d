// HangMonitor: samples the workers of a round. If they hang (agent/core/hangs/hang_watch.hpp), it
// collects their stacks and then reports the hang. It reads /proc on threads of its own: a process
// inside execve blocks the reader for as long as the file system of its program does not answer.
//
// Thread: the loop's. Owner: the daemon. Calls no callback after its destruction. Samples at
// HangWatch::next_look(); never with --hang-timeout=off.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <vector>

#include "agent/core/hangs/flight_traces.hpp"
#include "agent/core/hangs/hang_stacks.hpp"
#include "agent/core/hangs/hang_watch.hpp"
#include "agent/process/diagnostics/trace_collector.hpp"
#include "agent/process/process_host.hpp"
#include "common/failure/worker_exit.hpp"
#include "common/loop/background_work.hpp"
#include "common/loop/timer.hpp"

namespace cpprun {

class HangMonitor {
 public:
  struct Events {
    std::function<std::vector<StackTarget>()> live;  // the live workers and their heartbeats
    // Called after on_warning has reported the stacks. `hung`: as for Agent::on_hang(). `since`:
    // the last sign of progress.
    std::function<void(const WorkerExit& hung, Instant since)> on_hang;
    std::function<void(const std::string&)> on_warning;  // may have several lines
  };

  HangMonitor(boost::asio::io_context& loop, HangConfig config, Events events)
      : events_(std::move(events)),
        watch_(config),
        timer_(loop, [this] { sample(); }),
        background_(loop) {}

  // The workers of a round have started. Stacks of a hang are also written to the file `report`
  // unless it is "".
  void begin_round(const std::string& report);
  // The workers are being stopped or have ended: a running collection is dropped.
  void end_round();
  void on_stopped();  // a signal stopped a worker (state T): samples at once

  // As of HangWatch.
  void learn(const HangTimes& times) { watch_.learn(times); }
  HangTimes learned() const { return watch_.learned(); }

 private:
  struct Evidence {
    agent::Hang hang;
    std::vector<StackTarget> targets;
    Instant found_at;
    std::vector<std::string> texts{};  // one per target
    std::vector<agent::RankStack> stacks{};
    agent::StackComparison comparison{};
    agent::TraceFinding traces{};  // of torch's flight recorders
    std::string trace_folder{};    // where the dumps are; empty: there are none
    // The hung worker's state after that.
    WorkerObservation::State state_after{};
    bool is_written = false;
  };

  void sample();
  void on_sampled(const std::vector<StackTarget>& targets);
  void collect(Evidence evidence);
  // On a background thread. With a guess, add_stacks() also finds the worker that differs.
  static void add_stacks(Evidence& evidence, const std::vector<FlightDump>& dumps);
  static void write_report(Evidence& evidence, const std::vector<FlightDump>& dumps,
                           const std::string& report);
  void on_evidence(Evidence evidence);
  bool has_progressed(const Evidence& evidence);

  Events events_;
  agent::HangWatch watch_;
  Timer timer_;
  std::string report_;
  uint64_t round_ = 0;        // own counter; a collection from an older round is dropped
  bool is_sampling_ = false;  // in this round
  bool wants_another_ = false;
  BackgroundWork background_;
};

}  // namespace cpprun
