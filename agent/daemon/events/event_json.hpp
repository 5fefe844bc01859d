// JSON files of a run: lines of events.jsonl, and the error file for an outer launcher.
// docs/events.md describes every field. Functions that return a string return one line with its
// newline.
#pragma once

#include <optional>
#include <string>

#include "agent/core/effects.hpp"
#include "agent/core/file_timers.hpp"
#include "agent/core/phase_timings.hpp"
#include "common/failure/failure_summary.hpp"
#include "common/failure/worker_exit.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {
struct AgentConfig;
}

namespace cpprun::event_json {

// When and where something happened.
struct Stamp {
  WallTime wall;
  Instant at;  // monotonic; comparable within one node
  std::string node;
};

// A spawned worker.
struct Started {
  Rank rank;
  LocalRank local_rank;
  int pid = 0;
};

std::string run_started(const Stamp& stamp, const AgentConfig& config, int pid);
std::string waiting(const Stamp& stamp, const control::Wait& message);
std::string round_formed(const Stamp& stamp, const control::RankAssignment& assignment);
std::string snapshot_chosen(const Stamp& stamp, const control::RankAssignment& assignment);
std::string worker_started(const Stamp& stamp, RoundNumber round, const Started& worker);
std::string round_started(const Stamp& stamp, RoundNumber round, size_t workers);
// Durations of the phases of a round's start. `cause`: "start", or why the previous round ended.
// `until`: "spawn", or "first_step" when all workers of this node have made one.
std::string timing(const Stamp& stamp, RoundNumber round, const std::string& cause,
                   const char* until, const agent::PhaseTimings& phases);
std::string worker_ready(const Stamp& stamp, RoundNumber round, LocalRank local_rank);
// All workers of this node are ready. `after`: time since the last one was spawned.
std::string round_ready(const Stamp& stamp, RoundNumber round, Duration after);
std::string snapshot_complete(const Stamp& stamp, LocalRank local_rank, int64_t step,
                              const std::string& path);
// Parses a message of torch's file timers; nullopt if `line` is not one.
std::optional<agent::TimerRequest> timer_request(const std::string& line);
// Takes the time stamps from `end`.
std::string worker_exited(const std::string& node, RoundNumber round, const WorkerExit& end);
std::string round_stopping(const Stamp& stamp, RoundNumber round, const std::string& cause,
                           const std::string& why);
// Another node was lost, left or joined. `stop` has such a cause.
std::string node_event(const Stamp& stamp, const control::Stop& stop);
std::string round_stopped(const Stamp& stamp, RoundNumber round);
std::string warning(const Stamp& stamp, const std::string& text);
std::string job_result(const Stamp& stamp, const control::JobResult& message);
std::string failure_summary(const Stamp& stamp, const Failure& failure, const std::string& text);
// The failure summary without a failed worker: a node was lost, and none replaced it before the
// join timeout.
std::string lost_node(const Stamp& stamp, const agent::Finish& finish, int64_t max_restarts);
std::string finished(const Stamp& stamp, const agent::Finish& finish, int exit_code);

// Copies the root cause's error file to the launcher's own error file, as torchelastic does for
// nested launchers; adds the worker's exit code in the nested form. Logs a warning on failure.
void copy_error_file(const WorkerExit& root, const std::string& to);

}  // namespace cpprun::event_json
