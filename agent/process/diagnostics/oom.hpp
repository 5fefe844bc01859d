// OomCounter: did the kernel's OOM killer end that worker? Compares counters; says "yes" once per
// kill counted.
//
// Asks the nearest counter that there is: the agent's own cgroup (v2, then v1), else the machine's.
// Thread: the loop's.
#pragma once

#include <cstdint>
#include <string>

namespace cpprun {

class OomCounter {
 public:
  OomCounter();
  void begin_round();  // forgets kills of before
  bool take_kill();    // a kill since then that was not taken yet?

 private:
  int64_t read() const;

  std::string file_;
  int64_t seen_ = 0;
};

}  // namespace cpprun
