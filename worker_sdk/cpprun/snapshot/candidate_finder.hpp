// CandidateFinder: finds the snapshots that each rank could resume from. One per resume(); all
// ranks call it in the same order. Private to snapshot.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cpprun/snapshot/folder_group.hpp"
#include "cpprun/snapshot/resume_choice.hpp"
#include "cpprun/snapshot/save/in_memory_snapshot.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"
#include "cpprun/snapshot/snapshot_location.hpp"
#include "snapshot_files/archive/tensor_file.hpp"

namespace cpprun::snapshot {

class CandidateFinder {
 public:
  // References must outlive it. Without `uses_memory`, ignores snapshots in memory.
  CandidateFinder(const SnapshotLocation& location, const SnapshotComm& comm, FolderGroup& group,
                  InMemorySnapshot& memory, bool uses_memory)
      : location_(location),
        comm_(comm),
        group_(group),
        memory_(memory),
        uses_memory_(uses_memory) {}

  // Collective: the candidates of every rank. If only some ranks see the single file, rank 0 sends
  // its bytes to all. Throws std::runtime_error if a rank sends something else.
  std::vector<Candidates> find();
  // The launcher chooses in its own folder only; for a Snapshot in another one this is empty.
  std::string launchers_choice() const;
  // Opens a single file, or the copy that rank 0 sent; the copy lives as long as this object.
  Result<archive::TensorFile> open_single(const std::string& path) const;

 private:
  std::vector<Candidates> gather();
  Candidates own();
  void add_in_memory(Candidates& all);
  void add_single_files(Candidates& all) const;
  void add_folders(Candidates& all) const;
  bool share_single_files(const std::vector<Candidates>& of_ranks);

  const SnapshotLocation& location_;
  const SnapshotComm& comm_;
  FolderGroup& group_;
  InMemorySnapshot& memory_;
  const bool uses_memory_;
  std::map<std::string, std::string> received_;  // bytes of files, by path
};

// Identifies a save in memory.
std::string memory_id(const snapshot_files::SlotLabel& label);

}  // namespace cpprun::snapshot
