#include "common/worker_end.hpp"

#include <algorithm>

#include "common/check.hpp"
#include "common/signals.hpp"

namespace cpprun {
namespace {

WallTime first_death(const std::vector<WorkerEnd>& ends) {
  WallTime first{INT64_MAX};
  for (const WorkerEnd& end : ends) {
    if (!end.is_success()) first = std::min(first, end.ended_at_wall);
  }
  return first;
}

// When this failure happened, for the order of failures. An error file written after the first
// death tells of a consequence, whatever stamp stands in it.
WallTime happened_at(const WorkerEnd& end, WallTime first) {
  bool counts = end.error && end.error->stamp && end.error->file_time <= first;
  return counts ? std::min(*end.error->stamp, end.ended_at_wall) : end.ended_at_wall;
}

bool is_consequence(const WorkerEnd& end) {
  return end.error && end.error->is_consequence;
}

// More than having been stopped.
bool has_own_cause(const WorkerEnd& end) {
  return !end.is_success() && !is_consequence(end) && (end.error || !end.is_stopped_by_us);
}

}  // namespace

size_t root_cause(const std::vector<WorkerEnd>& ends) {
  WallTime first = first_death(ends);
  const bool consequences_yield = std::any_of(ends.begin(), ends.end(), has_own_cause);
  size_t root = ends.size();
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].is_success() || (consequences_yield && is_consequence(ends[i]))) continue;
    if (root == ends.size() || happened_at(ends[i], first) < happened_at(ends[root], first)) {
      root = i;
    }
  }
  CPPRUN_CHECK(root < ends.size());
  return root;
}

std::string describe_end(const WorkerEnd& end) {
  if (end.signal() == 0) return "exited with code " + std::to_string(end.exit_code);
  std::string text = "was killed by " + signal_name(end.signal());
  if (end.is_oom_kill) text += " (the kernel's OOM killer: out of memory)";
  if (end.has_core) text += " (core dumped)";
  return text;
}

}  // namespace cpprun
