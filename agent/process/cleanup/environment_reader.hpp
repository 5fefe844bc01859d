// EnvironmentReader: reads from the environments of processes which worker they belong to, on
// threads of its own: a read takes the lock of the target's memory, and a process that waits inside
// the kernel may hold that for ever.
//
// Thread: the loop's. A thread that waits is never joined.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/process/proc_files.hpp"

namespace cpprun {

class EnvironmentReader {
 public:
  struct Answer {
    int pid = 0;
    Origin origin;
  };

  // `on_news` is called on a thread when take() has news.
  EnvironmentReader(std::string token, std::function<void()> on_news);
  EnvironmentReader(const EnvironmentReader&) = delete;

  // One after the other. No answer comes for a process that blocks the reader, for those behind it,
  // and while limits::kEnvironmentReaders threads wait already.
  void ask(std::vector<int> pids);
  std::vector<Answer> take();

 private:
  struct State;

  const std::shared_ptr<State> state_;  // shared with the threads
};

}  // namespace cpprun
