// StuckProcess: one of our processes that SIGKILL has not ended, and what the kernel shows of it.
#pragma once

#include <optional>
#include <string>

#include "common/ids.hpp"
#include "common/time.hpp"

namespace cpprun {

struct StuckProcess {
  int pid = 0;
  std::optional<LocalRank> local_rank;  // of the worker that it is, or that left it behind
  std::optional<Rank> rank;             // nothing: it is no worker, a worker left it behind
  Duration since{};                     // SIGKILL
};

// "rank 0 (pid 4711)", or "process 4711, left behind by local rank 0".
std::string name_of(const StuckProcess& process);

// One line: its name, how long ago it got SIGKILL, and of the thread that is not done: its state,
// wait channel, and kernel stack where we may read it; and what helps. Reads no file of /proc that
// takes the lock of the target's memory. Blocks where the target is inside execve: for a thread
// that may wait.
std::string describe(const StuckProcess& process);

// The pure part, of the texts in /proc/<pid>/task/<tid>: status, wchan and stack.
std::string describe_thread(const std::string& status, const std::string& wait_channel,
                            const std::string& stack);

}  // namespace cpprun
