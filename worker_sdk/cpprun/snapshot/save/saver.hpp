// Saver: runs one save at a time in a thread of its own. Call it from one thread. Private to
// snapshot.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "common/result.hpp"

namespace cpprun::snapshot {

class Saver {
 public:
  using Job = std::function<Status(const std::atomic<bool>& gives_up)>;

  ~Saver();
  bool is_busy() const { return is_busy_.load(); }
  // Requires !is_busy().
  void start(Job job);
  // Waits for the running job. True if the last job succeeded, or none was started.
  bool wait();

 private:
  std::atomic<bool> is_busy_{false}, gives_up_{false}, is_well_{true};
  std::thread thread_;
};

}  // namespace cpprun::snapshot
