// Writes a staged snapshot: each rank writes its parts; at the end the snapshot has its final name,
// or nothing of it is left. Runs in the writing thread. Private to snapshot.
//
// Each step of the protocol sets a store key exactly once, also on errors, so that no rank waits
// for a rank that has failed (docs/reference/snapshots.md, "Commit").
#pragma once

#include <functional>
#include <string>

#include "common/result.hpp"
#include "cpprun/snapshot/save/stage.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"
#include "snapshot_files/folders/file_layer.hpp"
#include "snapshot_files/folders/prune.hpp"

namespace cpprun::snapshot {

struct WriteContext {
  snapshot_files::FileLayer* files = nullptr;
  std::string place;  // path of the folder or file
  Group group;
  int rank = 0, world = 1;
  snapshot_files::KeepRule keep;
  std::string run_id, torch, cpprun;
  int64_t round = 0;
  // Rank 0 calls it before the final rename; an error forbids the rename.
  std::function<Status(int64_t step)> request_commit;
};

// Returns the path of the snapshot once every group has committed it, or why it was not written.
// All ranks return the same outcome, except for errors that only one rank sees.
Result<std::string> write_folder(const Staged& staged, const WriteContext& context,
                                 StoreChannel& channel);
Result<std::string> write_single_file(const Staged& staged, const WriteContext& context,
                                      StoreChannel& channel);

}  // namespace cpprun::snapshot
