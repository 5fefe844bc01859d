// SnapshotLoader: finds the snapshots that each rank could resume from, and loads the newest that
// all ranks can load. One per resume(); all ranks call it in the same order. Private to snapshot.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cpprun/snapshot/folder_group.hpp"
#include "cpprun/snapshot/resume_choice.hpp"
#include "cpprun/snapshot/save/in_memory_snapshot.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"
#include "cpprun/snapshot/state/state_layout.hpp"
#include "snapshot_files/archive/tensor_file.hpp"

namespace cpprun::snapshot {

struct LoadedSnapshot {
  Candidate candidate;
  std::string path;  // empty for a snapshot in memory
  Loaded files;      // valid as long as the SnapshotLoader
  int saved_ranks;   // number of ranks whose own state it has; 0: Python wrote it
};

class SnapshotLoader {
 public:
  // References must outlive it. Without `uses_memory`, ignores snapshots in memory. Ignores
  // snapshots of `before_step` and later steps.
  SnapshotLoader(const SnapshotLocation& location, const SnapshotComm& comm, FolderGroup& group,
                 InMemorySnapshot& memory, bool uses_memory, int64_t before_step)
      : location_(location),
        comm_(comm),
        group_(group),
        memory_(memory),
        uses_memory_(uses_memory),
        before_step_(before_step) {}

  // Collective. Skips damaged snapshots, which rank 0 reports on stderr; every rank reports the
  // outcome to its agent. Empty: there is no usable snapshot. Throws std::runtime_error if a rank
  // sends something else than its candidates.
  std::optional<LoadedSnapshot> load();

 private:
  // The candidates of every rank. If only some ranks see the single file, rank 0 sends its bytes to
  // all.
  std::vector<Candidates> find();
  std::vector<Candidates> gather();
  Candidates own();
  void add_in_memory(Candidates& all);
  void add_single_files(Candidates& all) const;
  void add_folders(Candidates& all) const;
  bool share_single_files(const std::vector<Candidates>& of_ranks);
  // The launcher chooses in its own folder only; for a Snapshot in another one this is empty.
  std::string launchers_choice() const;

  Result<Loaded> load(const Candidate& candidate);
  Result<Loaded> load_memory(const Candidate& candidate);
  Result<Loaded> load_folder(const std::string& path);
  Result<Loaded> load_single(const std::string& path);
  // Opens a single file, or the copy that rank 0 sent.
  Result<archive::TensorFile> open_single(const std::string& path) const;
  std::string path_of(const Candidate& candidate) const;
  // Why some rank could not load; empty if all could.
  std::string failure_of_any(const Result<Loaded>& own) const;
  void report_to_agent(const Candidate* loaded) const;  // null: no snapshot was loaded
  void report_damaged(const Candidates& damaged, const std::string& instead) const;

  const SnapshotLocation& location_;
  const SnapshotComm& comm_;
  FolderGroup& group_;
  InMemorySnapshot& memory_;
  const bool uses_memory_;
  const int64_t before_step_;
  int saved_ranks_ = 0;                          // of the snapshot that was loaded last
  std::map<std::string, std::string> received_;  // bytes of files, by path
};

}  // namespace cpprun::snapshot
