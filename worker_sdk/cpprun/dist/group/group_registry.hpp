// The process groups of this process: the default group and those made from it. Private to dist.
// Any thread; no function blocks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cpprun/dist/group/group_state.hpp"

namespace cpprun::dist::registry {

using Group = std::shared_ptr<ProcessGroup::State>;

// Null if there is none.
Group default_group();
// Throws DistStateError if there is a default group.
void check_no_default();
void set_default(Group group);
void add(Group group);
// False: the group is not registered (any more).
bool remove(const Group& group);
std::vector<Group> all();  // a copy
// Removes all groups and returns them, the newest first, the default group last.
std::vector<Group> remove_all();

// "0", "1", ...: Python's names of groups, which are part of their keys in the store. All ranks
// make groups in the same order, so the names agree. Starts again after remove_all().
std::string next_name();

}  // namespace cpprun::dist::registry
