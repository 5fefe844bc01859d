// OomCounter: whether the kernel's OOM killer ended a worker, by the kernel's counter of OOM kills.
// Each kill counts for one worker.
//
// Reads the nearest counter that exists: that of the agent's own cgroup (v2, then v1), otherwise
// the machine's. Thread: the loop's.
#pragma once

#include <cstdint>
#include <string>

namespace cpprun {

class OomCounter {
 public:
  OomCounter();
  void begin_round();  // forgets earlier kills
  bool take_kill();    // true: a kill since then that no call has taken yet

 private:
  int64_t read() const;

  std::string file_;
  int64_t seen_ = 0;
};

}  // namespace cpprun
