// The reaper process's own code: what runs after the fork until its end. Allocates nothing and
// takes no lock, because it may be forked from a process with threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace cpprun {

// Shared by agent and reaper process. Times in nanoseconds of CLOCK_BOOTTIME, INT64_MAX = never.
//
// Invariant: a deadline earlier than `wakes_at` is followed by a write to the reaper process's
// eventfd; a later one is found when the reaper process wakes by itself. So heartbeats that move
// the deadline on cost no wake-up.
struct ReaperPage {
  std::atomic<int64_t> deadline{INT64_MAX};  // written by the agent
  std::atomic<int64_t> wakes_at{0};          // written by the reaper process
  // Of a look through /proc: the process that is looked at, and whether one of ours was found.
  std::atomic<int> looked_at{0};
  std::atomic<int> found{0};
};

struct ReaperTask {
  ReaperPage* page = nullptr;
  int agent = -1;  // pidfd
  int agent_pid = 0;
  int wake = -1;  // eventfd
  std::string_view token;
  const char* cgroup = "";  // folder, "" for none
};

[[noreturn]] void run_reaper(const ReaperTask& task);

// Does the environment that `file` (/proc/<pid>/environ) shows carry the token? Any size; allocates
// nothing.
bool environment_carries(int file, std::string_view token);

}  // namespace cpprun
