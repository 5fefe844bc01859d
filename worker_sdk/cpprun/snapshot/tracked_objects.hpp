// TrackedObjects: the objects of one Snapshot, in the order of track(). Private to snapshot.
#pragma once

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

 private:
  std::vector<Tracked> all_;
};

}  // namespace cpprun::snapshot
