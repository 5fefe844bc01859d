#include "cpprun/snapshot/save/save_report.hpp"

#include <cstdio>
#include <utility>

namespace cpprun::snapshot {
namespace {

// Removes the names of temporary files, which differ in each save.
std::string lasting(std::string why) {
  for (size_t at = why.find("/."); at != std::string::npos; at = why.find("/.", at)) {
    const size_t end = why.find(".tmp", at);
    if (end == std::string::npos) break;
    why.erase(at, end + 4 - at);
  }
  return why;
}

}  // namespace

void SaveReport::add(int64_t step, const Status& outcome) {
  std::string why = outcome ? "" : lasting(outcome.error().text);
  const std::scoped_lock lock(mutex_);
  const std::string last = std::exchange(last_error_, why);
  if (last == why || !is_first_rank_) return;
  if (outcome) {
    std::fprintf(stderr, "cpprun: snapshots are written again, from step %lld on\n",
                 static_cast<long long>(step));
  } else {
    std::fprintf(stderr,
                 "cpprun: the snapshot of step %lld was not written: %s; training continues, and "
                 "each later save tries again\n",
                 static_cast<long long>(step), outcome.error().text.c_str());
  }
}

}  // namespace cpprun::snapshot
