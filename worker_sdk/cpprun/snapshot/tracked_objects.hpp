// TrackedObjects: the objects of one Snapshot, in the order of track(). Private to snapshot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpprun/snapshot/folder_group.hpp"
#include "cpprun/snapshot/state/tracked.hpp"

namespace cpprun::snapshot {

class TrackedObjects {
 public:
  // Throws std::invalid_argument if the object is tracked already or the name is taken.
  void add(const std::string& name, Tracked added);
  // A snapshot may lack the object that was added last.
  void make_last_optional() { all_.back().is_optional = true; }

  const std::vector<Tracked>& all() const { return all_; }
  std::vector<const torch::nn::Module*> modules() const;
  std::vector<NamedParameter> parameters() const;
  // The name of a tensor of a module or an optimizer that has a NaN or an infinity; empty: none
  // has.
  std::string first_not_finite() const;

 private:
  std::vector<Tracked> all_;
};

// Collective; in hints.cpp. Warns on stderr about SDK objects of this process that the Snapshot
// does not track, and about parameters that differ between the ranks of a group, which write only
// one copy of them.
void warn_about_mistakes(const TrackedObjects& objects, const SnapshotComm& comm,
                         FolderGroup& group);

// A part of one parameter, another one for each `number`: its name and its checksum, to be compared
// between ranks. At most 1 MiB, so that it costs little. Empty: there is none to compare.
std::string drift_sample(const std::vector<NamedParameter>& parameters, uint64_t number);

}  // namespace cpprun::snapshot
