// Recorder: what happens to a run, as events. The daemon tells it what the coordinator said, what
// the workers did and what was wished; it writes the lines of events.jsonl (docs/events.md). It
// decides nothing, and nothing that it meets stops the agent. Thread: the loop's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "agent/core/effects.hpp"
#include "agent/daemon/event_log.hpp"
#include "agent/daemon/json_lines.hpp"

namespace cpprun {

class Recorder {
 public:
  // `run_folder` gets events.jsonl; empty: none. With --event-log-handler=console the events go to
  // stderr as well. `config` outlives this.
  Recorder(const AgentConfig& config, std::string node, const std::string& run_folder);

  void run_started();
  // Before the core hears of it.
  void on_message(const control::CoordinatorMessage& message);
  void on_signal(int signal);

  void worker_started(LocalRank local_rank, Rank rank, int pid);
  void round_started();  // all workers here were spawned
  void worker_ready(LocalRank local_rank);
  void snapshot_complete(LocalRank local_rank, int64_t step, const std::string& path);
  void worker_ended(const WorkerEnd& end);
  void first_failure(const std::string& text);
  void stopping();  // the workers were told to stop, whatever the reason
  void quiet();     // they are gone

  void warning(const std::string& text);
  void finished(const agent::Finish& finish, int exit_code);

 private:
  void on(const control::Wait& message);
  void on(const control::World& message);
  void on(const control::Stop& message);
  void on(const control::Decided& message);
  template <class Other>
  void on(const Other&) {}

  json_lines::Stamp now() const;
  void stops(const std::string& cause, const std::string& why);

  const AgentConfig& config_;
  const std::string node_;
  EventLog log_;
  RoundNumber round_;
  std::string started_;       // lines of this round's workers, written together
  size_t workers_ = 0;        // of this round, spawned
  bool is_running_ = false;   // there are workers
  bool is_stopping_ = false;  // and it was said why they go
  std::optional<json_lines::Stamp> told_to_stop_;
  std::string waits_for_;  // what was last waited for; said once
  int64_t newest_snapshot_ = 0;
};

}  // namespace cpprun
