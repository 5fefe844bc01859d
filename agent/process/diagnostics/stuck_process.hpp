// StuckProcess: a process of the job that SIGKILL has not ended, and the kernel's view of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/ids.hpp"
#include "common/time.hpp"

namespace cpprun {

struct StuckProcess {
  int pid = 0;
  std::optional<LocalRank> local_rank;  // of the worker that it is or that started it
  std::optional<Rank> rank;             // unset: an orphan of a worker
  Duration since{};                     // SIGKILL
};

// "rank 0 (pid 4711)", or "process 4711, left behind by local rank 0".
std::string name_of(const StuckProcess& process);

// One line: the name, the time since SIGKILL, and why: cpprun may not signal it; or of a thread
// that has not exited its state, wait channel and readable kernel stack; and what helps. Reads no
// file of /proc that takes the lock of the target's memory. Blocks while the target is inside
// execve: not for the loop's thread.
std::string describe(const StuckProcess& process);

// The pure part, from the texts in /proc/<pid>/task/<tid>: status, wchan and stack.
std::string describe_thread(const std::string& status, const std::string& wait_channel,
                            const std::string& stack);

// Of a process that this one may not signal, from its status.
std::string describe_foreign(const std::string& status, uint32_t own_user);

}  // namespace cpprun
