// SnapshotLoader: loads the newest snapshot that all ranks can load. One per resume(); all ranks
// call it in the same order. Private to snapshot.
#pragma once

#include <optional>
#include <string>

#include "cpprun/snapshot/candidate_finder.hpp"
#include "cpprun/snapshot/state/state_layout.hpp"

namespace cpprun::snapshot {

struct LoadedSnapshot {
  Candidate candidate;
  std::string path;  // empty for a snapshot in memory
  Loaded files;      // valid as long as the SnapshotLoader
};

class SnapshotLoader {
 public:
  // References must outlive it. Without `uses_memory`, ignores snapshots in memory.
  SnapshotLoader(const SnapshotLocation& location, const SnapshotComm& comm, FolderGroup& group,
                 InMemorySnapshot& memory, bool uses_memory)
      : location_(location),
        comm_(comm),
        group_(group),
        memory_(memory),
        finder_(location, comm, group, memory, uses_memory) {}

  // Collective. Skips damaged snapshots, which rank 0 reports on stderr; every rank reports the
  // outcome to its agent. Empty: there is no usable snapshot.
  std::optional<LoadedSnapshot> load();

 private:
  Result<Loaded> load(const Candidate& candidate);
  Result<Loaded> load_memory(const Candidate& candidate);
  Result<Loaded> load_folder(const std::string& path);
  Result<Loaded> load_single(const std::string& path);
  std::string path_of(const Candidate& candidate) const;
  // Why some rank could not load; empty if all could.
  std::string failure_of_any(const Result<Loaded>& own) const;
  void report_to_agent(const Candidate* loaded) const;  // null: no snapshot was loaded
  void report_damaged(const Candidates& damaged, const std::string& instead) const;

  const SnapshotLocation& location_;
  const SnapshotComm& comm_;
  FolderGroup& group_;
  InMemorySnapshot& memory_;
  CandidateFinder finder_;
};

}  // namespace cpprun::snapshot
