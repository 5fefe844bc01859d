// Writing a staged snapshot: all ranks together, each its share, to the point where it has its
// final name or there is nothing of it. Runs in the writing thread. Private to snapshot.
//
// Each step of the protocol is a key that is told exactly once, errors as well, so that no rank
// waits for one that has failed (docs/snapshots.md, "Commit").
#pragma once

#include <functional>
#include <string>

#include "common/result.hpp"
#include "cpprun/snapshot/save/staged.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"
#include "snapshot_files/folders/file_layer.hpp"
#include "snapshot_files/folders/keep.hpp"

namespace cpprun::snapshot {

struct WriteContext {
  snapshot_files::FileLayer* files = nullptr;
  std::string place;  // the folder, or the file
  Group group;
  int rank = 0, world = 1;
  snapshot_files::KeepRule keep;
  std::string run_id, torch, cpprun;
  int64_t round = 0;
  // Asked by rank 0 before the last rename; an error: no.
  std::function<Status(int64_t step)> request_commit;
};

// The folder or file that was written, once every group has it. Error: it was not, and why; the
// same on all ranks but for what only one knows.
Result<std::string> write_folder(const Staged& staged, const WriteContext& context,
                                 StoreChannel& channel);
Result<std::string> write_single_file(const Staged& staged, const WriteContext& context,
                                      StoreChannel& channel);

}  // namespace cpprun::snapshot
