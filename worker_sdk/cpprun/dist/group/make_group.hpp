// Makes a group from a store and a list of ranks: registers the rank, makes the backends and c10d's
// ProcessGroup. Private to dist; for init_process_group and new_group.
#pragma once

#include <memory>
#include <string>

#include "cpprun/dist/group/group_state.hpp"
#include "cpprun/dist/init/rank_registration.hpp"

namespace cpprun::dist {

struct GroupPlan {
  RankRegistration registration;  // its store has no group prefix yet
  std::string name;               // Python's name: "0", "1"; part of the keys
  std::string shown_name;
  std::string backend;  // resolved: not "auto"
  std::chrono::milliseconds timeout{};
  BackendOptions options;
  std::optional<c10::Device> device;
  std::string master_address;  // to choose Gloo's address; empty: unknown
};

void check_timeout(const char* call, const InitOptions& options);  // throws DistArgumentError

// Blocks until all ranks have joined. Throws DistError and reports it to the other ranks.
std::shared_ptr<ProcessGroup::State> make_group(const GroupPlan& plan);

// Releases a group's backends, which closes their connections even if other objects still hold the
// group. Blocks while a collective of the group runs.
void drop_backends(c10d::ProcessGroup& group);

// Ends all groups without waiting for their collectives longer than a moment, as if an exception
// unwound the stack.
void abandon_groups();

// Makes the process end all remaining groups at exit, within a second.
void retire_at_exit();

}  // namespace cpprun::dist
