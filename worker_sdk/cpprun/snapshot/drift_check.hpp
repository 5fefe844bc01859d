// DriftCheck: whether the ranks that write one snapshot together have the same parameters. If they
// differ, parts of several ranks would be a state that none of them had. Private to snapshot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpprun/snapshot/folder_group.hpp"
#include "cpprun/snapshot/state/tracked.hpp"

namespace cpprun::snapshot {

// The training thread calls it, before each save.
class DriftCheck {
 public:
  // `prints`: the lowest rank of a folder prints a hint on stderr, once. Both others must outlive
  // it.
  DriftCheck(const SnapshotComm& comm, FolderGroup& group, bool prints)
      : comm_(comm), group_(group), prints_(prints) {}

  // Collective. True: the ranks of this folder differ, now or at an earlier save. The first call
  // compares all parameters, each later one a part of one, another one each time: at most 1 MiB, so
  // that it costs little.
  bool differs(std::vector<NamedParameter> parameters, int64_t step);

 private:
  // What the ranks compare: a checksum for each name.
  struct Sample {
    std::vector<std::string> names;
    std::string checksums;
  };
  static Sample all(const std::vector<NamedParameter>& parameters);
  static Sample part(const std::vector<NamedParameter>& parameters, uint64_t number);
  void compare(const Sample& own, int64_t step);

  const SnapshotComm& comm_;
  FolderGroup& group_;
  const bool prints_;
  uint64_t calls_ = 0;
  bool differs_ = false;
};

}  // namespace cpprun::snapshot
