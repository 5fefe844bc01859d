// `cpprunctl snapshot ...`: lists, verifies, converts and prunes snapshots. Needs no torch.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"

namespace cpprun {

struct SnapshotCommandOptions {
  std::string path;  // a folder of snapshots, a snapshot, or a file of torch.save
  std::string to;    // convert: the output path
  bool is_json = false;
  bool wants_folder = false;  // latest: print the snapshot's folder instead of a file in it
  std::string strip_prefix;   // convert: removed from names in dictionaries where all have it
  int64_t step = -1;          // convert: for a file that contains none; -1: not given
  size_t keep = 0;            // prune
  int64_t keep_every = 0;     // prune
};

// Each prints to stdout. Errors name the path and the cure.
Status snapshot_ls(const SnapshotCommandOptions& options);
Status snapshot_show(const SnapshotCommandOptions& options);
Status snapshot_verify(const SnapshotCommandOptions& options);
Status snapshot_latest(const SnapshotCommandOptions& options);
Status snapshot_convert(const SnapshotCommandOptions& options);
Status snapshot_prune(const SnapshotCommandOptions& options);
Status snapshot_mark_bad(const SnapshotCommandOptions& options);

}  // namespace cpprun
