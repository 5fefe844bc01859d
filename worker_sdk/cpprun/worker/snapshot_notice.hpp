// What a worker tells its agent about snapshots. cpprun::Snapshot calls all of this by itself; for
// programs that write snapshots of their own.
//
// Without an agent every call works: leave is given, notices go nowhere. Any thread, but not in
// signal handlers. No Python counterpart; Python programs have cpprun_worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cpprun::worker {

struct CommitPermission {
  bool is_permitted = true;
  std::string why;  // not
  explicit operator bool() const { return is_permitted; }
};

// Asks the agent for leave to give the snapshot of this step its final name, and waits for the
// answer, limits::kPermissionTimeout at most. No leave: the round is over or being stopped, so that
// others may be training already, or the agent does not answer. What is written stays without a
// name then. Asked once for each snapshot, by the rank that renames.
CommitPermission request_commit(int64_t step);

// The snapshot of this step is committed and lies at `path` (made absolute here). For the agent's
// status, for the choice of the next round's, and for the other workers of this node.
void report_snapshot(int64_t step, const std::string& path);

// What this worker's training goes on from: the snapshot of this step at `path`, "" for one in
// memory; -1 and "": it begins anew. `fell_back`: the one that the launcher chose
// (environment().resume_from) could not be used, so that no later round is to begin with it. Once,
// before training.
void report_resumed(int64_t step, const std::string& path, bool fell_back);

// The newest snapshot that a worker of this node has told in this round.
std::optional<int64_t> newest_snapshot();

// This program saves and then ends (with kStoppedResumable) when should_stop() says so. On a stop
// request its agent then gives it --shutdown-timeout for that, instead of SIGTERM at once.
void enable_graceful_stop();

}  // namespace cpprun::worker
