#include "cpprun/dist/group/group_registry.hpp"

#include <mutex>

namespace cpprun::dist::registry {
namespace {

struct GroupRegistry {
  std::mutex mutex;
  Group default_group;
  std::vector<Group> others;  // in the order of creation
  int names = 0;
};

// Never destroyed, because groups may be stuck in a collective when the process exits.
GroupRegistry& own() {
  static GroupRegistry& registry = *new GroupRegistry;
  return registry;
}

}  // namespace

Group default_group() {
  const std::lock_guard lock(own().mutex);
  return own().default_group;
}

void check_no_default() {
  if (!default_group()) return;
  throw DistStateError(
      "init_process_group: the default group is there already (" + describe(*default_group()) +
      "); call destroy_process_group() first, or use new_group() for a further group");
}

void set_default(Group group) {
  const std::lock_guard lock(own().mutex);
  own().default_group = std::move(group);
}

void add(Group group) {
  const std::lock_guard lock(own().mutex);
  own().others.push_back(std::move(group));
}

bool remove(const Group& group) {
  const std::lock_guard lock(own().mutex);
  return std::erase(own().others, group) > 0;
}

std::vector<Group> all() {
  const std::lock_guard lock(own().mutex);
  std::vector<Group> found = own().others;
  if (own().default_group) found.push_back(own().default_group);
  return found;
}

std::vector<Group> remove_all() {
  const std::lock_guard lock(own().mutex);
  std::vector<Group> all(own().others.rbegin(), own().others.rend());
  if (own().default_group) all.push_back(std::move(own().default_group));
  own().default_group = nullptr;
  own().others.clear();
  own().names = 0;
  return all;
}

std::string next_name() {
  const std::lock_guard lock(own().mutex);
  return std::to_string(own().names++);
}

}  // namespace cpprun::dist::registry
