// The code of the reaper process, from the fork to its end. Allocates nothing and takes no lock,
// because renew() forks it from a process with threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace cpprun {

// Shared memory of agent and reaper process. Times in nanoseconds of CLOCK_BOOTTIME, INT64_MAX:
// never.
//
// Invariant: after the agent stores a deadline earlier than `wakes_at` it writes to the reaper
// process's eventfd. The reaper process finds a later deadline when it wakes at `wakes_at`. So
// heartbeats that only extend the deadline cause no wake-up.
struct ReaperPage {
  std::atomic<int64_t> deadline{INT64_MAX};  // written by the agent
  std::atomic<int64_t> wakes_at{0};          // written by the reaper process
  // The deadline at which it kills or has killed the workers. It stores this before it reads
  // `deadline` once more: either it sees that the agent has extended that, or the agent, which
  // reads this afterwards, sees the kill.
  std::atomic<int64_t> killed_at{0};
  // Progress of a scan of /proc: the process that is being examined, and whether the scan killed
  // one.
  std::atomic<int> looked_at{0};
  std::atomic<int> found{0};
};

struct ReaperTask {
  ReaperPage* page = nullptr;
  int agent = -1;  // pidfd
  int agent_pid = 0;
  int wake = -1;  // eventfd
  std::string_view token;
  const char* cgroup = "";  // folder; "": none
};

[[noreturn]] void run_reaper(const ReaperTask& task);

// Whether the environment in `file` (/proc/<pid>/environ) contains the token. Any size; allocates
// nothing.
bool environment_carries(int file, std::string_view token);

}  // namespace cpprun
