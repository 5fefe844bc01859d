#include "agent/process/own_children.hpp"

#include <mutex>
#include <set>

namespace cpprun {
namespace {

struct Spared {
  std::mutex mutex;
  std::set<int> pids;
};

Spared& spared() {
  static Spared list;
  return list;
}

}  // namespace

void spare_child(int pid) {
  const std::lock_guard lock(spared().mutex);
  spared().pids.insert(pid);
}

void unspare_child(int pid) {
  const std::lock_guard lock(spared().mutex);
  spared().pids.erase(pid);
}

bool is_spared(int pid) {
  const std::lock_guard lock(spared().mutex);
  return spared().pids.contains(pid);
}

}  // namespace cpprun
