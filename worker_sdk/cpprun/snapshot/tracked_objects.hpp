// TrackedObjects: the objects of one Snapshot, in the order of track(). Private to snapshot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

// In hints.cpp. Warns on stderr about SDK objects of this process that the Snapshot does not track.
void warn_about_untracked(const TrackedObjects& objects);

}  // namespace cpprun::snapshot
