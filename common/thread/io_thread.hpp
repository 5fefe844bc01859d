// IoThread: runs file operations in order on a thread of its own, because a file system may not
// answer and no loop may wait for it.
//
// Thread-safe. The thread starts with the first task, unless start() did before. It shares what it
// uses, so that the destructor need not wait for a file system that never answers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

class IoThread {
 public:
  using Task = std::function<void()>;

  IoThread();
  ~IoThread();  // drops the tasks that have not begun, on the thread, and does not wait
  IoThread(const IoThread&) = delete;

  Status start();

  // Runs `task` after all earlier ones, and destroys it on the thread. The task must own or share
  // everything it uses, and throws nothing. False: limits::kIoTasks wait already, or the system
  // cannot start a thread; the task is not run.
  bool post(Task task);

  // Waits until all tasks that were posted before have ended, at most `most`. False: one has not.
  bool wait(Duration most);

  // Runs `work` after all earlier tasks and waits for its result; unset if it does not come within
  // `most`. `work` is as a task.
  template <class Work>
  auto result_of(Work work, Duration most) -> std::optional<decltype(work())> {
    const auto result = std::make_shared<std::optional<decltype(work())>>();
    const bool is_posted = post([result, work = std::move(work)]() mutable { *result = work(); });
    if (!is_posted || !wait(most)) return std::nullopt;
    return *result;
  }

 private:
  struct State;
  static void run(State& state);

  const std::shared_ptr<State> state_;  // shared with the thread
};

}  // namespace cpprun
