#include "agent/process/cleanup/helper_start.hpp"

#include <algorithm>
#include <mutex>
#include <set>

namespace cpprun {
namespace {

struct Helpers {
  std::mutex mutex;
  std::set<int> pids;
  std::set<const StartTicket*> starts;
};

Helpers& helpers() {
  static Helpers list;
  return list;
}

}  // namespace

void register_helper(int pid) {
  const std::lock_guard lock(helpers().mutex);
  helpers().pids.insert(pid);
}

void unregister_helper(int pid) {
  const std::lock_guard lock(helpers().mutex);
  helpers().pids.erase(pid);
}

bool is_helper(int pid) {
  const std::lock_guard lock(helpers().mutex);
  if (helpers().pids.contains(pid)) return true;
  return std::ranges::any_of(helpers().starts,
                             [pid](const StartTicket* start) { return start->child() == pid; });
}

HelperStart::HelperStart(const StartTicket& ticket) : ticket_(ticket) {
  const std::lock_guard lock(helpers().mutex);
  helpers().starts.insert(&ticket_);
}

HelperStart::~HelperStart() {
  const std::lock_guard lock(helpers().mutex);
  helpers().starts.erase(&ticket_);
}

bool HelperStart::is_any_unnamed() {
  const std::lock_guard lock(helpers().mutex);
  return std::ranges::any_of(helpers().starts,
                             [](const StartTicket* start) { return start->child() == 0; });
}

}  // namespace cpprun
