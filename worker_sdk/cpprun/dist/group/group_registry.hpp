// The groups of this process: the default one and those made from it. Private to dist.
//
// One lock; no call here blocks or talks to anybody.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cpprun/dist/group/group_state.hpp"

namespace cpprun::dist::registry {

using Group = std::shared_ptr<ProcessGroup::State>;

// Null when there is none.
Group default_group();
// Throws DistStateError when there is a default group already.
void check_no_default();
void set_default(Group group);
void add(Group group);
// Takes the group out; false: it was not here (any more).
bool remove(const Group& group);
// Takes all out, the newest first, the default one last.
std::vector<Group> remove_all();

// "0", "1", ...: the names that Python gives to groups, which are part of their keys in the store.
// All ranks make groups in the same order, so they agree. Starts anew after remove_all().
std::string next_name();

}  // namespace cpprun::dist::registry
