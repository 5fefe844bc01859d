// Makes a group out of a store and a list of ranks: roll call, backends, the c10d object. Private
// to dist; what init_process_group and new_group share.
#pragma once

#include <memory>
#include <string>

#include "cpprun/dist/group/group_state.hpp"
#include "cpprun/dist/init/rank_registration.hpp"

namespace cpprun::dist {

struct GroupPlan {
  RankRegistration registration;  // its store has no group's prefix yet
  std::string name;               // Python's: "0", "1"; part of the keys
  std::string shown_name;
  std::string backend;  // resolved: not "auto"
  std::chrono::milliseconds timeout{};
  BackendOptions options;
  std::optional<c10::Device> device;
  std::string master_address;  // for Gloo's choice of an address; empty: none known
};

// Blocks until all ranks are there. Throws DistError; the other ranks learn of it.
std::shared_ptr<ProcessGroup::State> make_group(const GroupPlan& plan);

// Lets go of a group's backends, which closes their connections even if others still hold the
// object. Blocks as long as a collective of it runs.
void drop_backends(c10d::ProcessGroup& group);

// From now on the end of the process takes groups along that nobody destroyed, within a second.
void retire_at_exit();

}  // namespace cpprun::dist
