// EventRecorder: what happens to a run, as events. The daemon tells it what the coordinator said,
// what the workers did and what was wished; it writes the lines of events.jsonl (docs/events.md).
// It decides nothing, and nothing that it meets stops the agent. It also takes the times of a start
// and of each recovery, phase by phase, and prints them where --timing asks for it. Thread: the
// loop's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "agent/core/effects.hpp"
#include "agent/core/phase_timings.hpp"
#include "agent/core/startup_progress.hpp"
#include "agent/daemon/events/event_json.hpp"
#include "agent/daemon/events/event_log.hpp"
#include "agent/daemon/events/torchelastic_events.hpp"
#include "common/failure/failure_summary.hpp"

namespace cpprun {

class EventRecorder {
 public:
  // `run_folder` gets events.jsonl; empty: none. With --event-log-handler=console torchrun's own
  // records go to stderr. `config` outlives this.
  EventRecorder(const AgentConfig& config, std::string node, const std::string& run_folder);

  // Before run_started(): what the launcher has measured of its own start.
  void took(const StartTimes& times) { start_times_ = times; }
  void run_started();
  // Before the core hears of it.
  void on_message(const control::CoordinatorMessage& message);
  void on_signal(int signal);

  void starting();  // the round's workers are about to be spawned
  void worker_started(LocalRank local_rank, Rank rank, int pid);
  void round_started();  // all workers here were spawned
  // What a worker says on its way to its first step: agent/core/startup_progress.hpp.
  void worker_connected(LocalRank local_rank);
  void worker_ready(LocalRank local_rank);
  void worker_resumed(LocalRank local_rank);
  void worker_stepped(LocalRank local_rank);
  void snapshot_complete(LocalRank local_rank, int64_t step, const std::string& path);
  void worker_exited(const WorkerExit& end);
  void first_failure(const std::string& text);
  void stopping();  // the workers were told to stop, whatever the reason
  void quiet();     // they are gone

  void warning(const std::string& text);
  // Also as failure_summary.json, beside the events. `text` is the paragraph that people see.
  void failure_summary(const Failure& failure, const std::string& text);
  // The same where a node was lost and none took its place.
  void lost_node(const agent::Finish& finish);
  void finished(const agent::Finish& finish, int exit_code);
  void close() { log_.close(); }  // what comes later is written nowhere

 private:
  void on(const control::Registered& message);
  void on(const control::Wait& message);
  void on(const control::RankAssignment& message);
  void on(const control::Stop& message);
  void on(const control::JobResult& message);
  void on(const control::ShutdownRequest& message) { stops("admin", message.why); }
  template <class Other>
  void on(const Other&) {}

  event_json::Stamp now() const;
  void stops(const std::string& cause, const std::string& why);
  void take_start_times();
  void keep_failure_summary(const std::string& line);
  // `until`: what was reached, "spawn" or "first_step".
  void write_timing(const char* until);

  const AgentConfig& config_;
  const std::string node_;
  const std::string run_folder_;
  EventLog log_;
  TorchelasticEvents torch_;
  RoundNumber round_;
  std::string started_;       // lines of this round's workers, written together
  size_t workers_ = 0;        // of this round, spawned
  size_t ready_ = 0;          // of them, those that said that they are ready
  Instant spawned_at_;        // when the last one was
  bool is_fetching_ = false;  // a snapshot, before the workers start
  StartTimes start_times_;
  agent::PhaseTimings phases_;
  agent::StartupProgress startup_progress_;
  std::string cause_ = "start";       // of the account in phases_: why a round was stopped
  std::optional<Instant> failed_at_;  // the first failure of this round here
  bool is_running_ = false;           // there are workers
  bool is_stopping_ = false;          // and it was said why they go
  std::optional<event_json::Stamp> stop_reported_at_;
  std::string waits_for_;  // what was last waited for; said once
  int64_t newest_snapshot_ = 0;
};

}  // namespace cpprun
