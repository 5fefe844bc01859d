/// @file
/// What a worker and its agent exchange about snapshots. cpprun::Snapshot calls all of this by
/// itself; programs that write their own snapshots call it directly.
///
/// Without an agent every function works: commits are permitted, reports are dropped. Any thread,
/// but not in signal handlers. Python counterpart: the module cpprun_worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cpprun::worker {

/// The agent's answer to request_commit().
struct CommitPermission {
  bool is_permitted = true;  ///< false: leave the snapshot under its temporary name
  std::string why;           ///< the reason of a refusal
  /// The same as is_permitted.
  explicit operator bool() const { return is_permitted; }
};

/// Asks the agent for permission to commit the snapshot of `step`, that is to rename it to its
/// final name, and waits for the answer, at most limits::kPermissionTimeout. The agent refuses
/// while the round is being stopped or over, because another round may be training already; no
/// answer counts as a refusal. After a refusal leave the snapshot under its temporary name. The
/// rank that renames calls it, once per snapshot.
CommitPermission request_commit(int64_t step);

/// Reports that the snapshot of `step` is committed at `path` (made absolute here). Used for the
/// agent's status, the choice of the next round's snapshot, and the other workers of this node.
void report_snapshot(int64_t step, const std::string& path);

/// Reports where training resumes: from the snapshot of `step` at `path`, or from memory if `path`
/// is empty; step -1 with an empty path means that training starts anew. `fell_back`: the snapshot
/// that the launcher chose (environment().resume_from) was unusable, so later rounds must not start
/// from it. Call it once, before training.
void report_resumed(int64_t step, const std::string& path, bool fell_back);

/// The newest snapshot that any worker of this node has reported in this round.
std::optional<int64_t> newest_snapshot();

/// States that this program saves and then ends (with kStoppedResumable) when should_stop() is
/// true. On a stop request the agent then gives it --shutdown-timeout for that instead of sending
/// SIGTERM at once.
void enable_graceful_stop();

}  // namespace cpprun::worker
