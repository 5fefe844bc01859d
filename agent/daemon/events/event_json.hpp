// The JSON that a run writes: lines of events.jsonl, and the error file it hands up. Names, types
// and units of every field: docs/events.md. Each function gives one whole line.
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
  Instant at;  // of this machine's clock; differences between two of one node are exact
  std::string node;
};

// A worker that was spawned.
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
// What the start of a round took, phase by phase. `cause`: "start", or why the round before ended;
// `until`: "spawn", or "first_step" once all workers here have made one.
std::string timing(const Stamp& stamp, RoundNumber round, const std::string& cause,
                   const char* until, const agent::PhaseTimings& phases);
std::string worker_ready(const Stamp& stamp, RoundNumber round, LocalRank local_rank);
// All workers of this node are ready, `after` the last one was spawned.
std::string round_ready(const Stamp& stamp, RoundNumber round, Duration after);
std::string snapshot_complete(const Stamp& stamp, LocalRank local_rank, int64_t step,
                              const std::string& path);
// What a client of torch's file timers wrote; nothing if it is no such message.
std::optional<agent::TimerRequest> timer_request(const std::string& line);
// `node`: its time stamps are the end's own.
std::string worker_exited(const std::string& node, RoundNumber round, const WorkerExit& end);
std::string round_stopping(const Stamp& stamp, RoundNumber round, const std::string& cause,
                           const std::string& why);
// Whether another node was lost, left or joined: the cause is that of a stop.
std::string node_event(const Stamp& stamp, const control::Stop& stop);
std::string round_stopped(const Stamp& stamp, RoundNumber round);
std::string warning(const Stamp& stamp, const std::string& text);
std::string decided(const Stamp& stamp, const control::JobResult& message);
std::string failure_summary(const Stamp& stamp, const Failure& failure, const std::string& text);
// The failure summary where no worker failed: a node was lost, and the join timeout came before
// another.
std::string lost_node(const Stamp& stamp, const agent::Finish& finish, int64_t max_restarts);
std::string finished(const Stamp& stamp, const agent::Finish& finish, int exit_code);

// Writes a whole file. A failure is said as a warning.
void write_file(const std::string& path, const std::string& bytes);

// Copies the root cause's error file to the launcher's own (torchelastic nests this way), adding
// the worker's exit code in the nested form. A failure is said as a warning.
void copy_error_file(const WorkerExit& root, const std::string& to);

}  // namespace cpprun::event_json
