// BackgroundThread: runs one job at a time on a thread of its own, for work that training does not
// wait for. Python counterpart: cpprun_worker/_snapshot/background.py. Private to snapshot.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <thread>

namespace cpprun::snapshot {

// All methods: any thread, but run() and start() one at a time.
class BackgroundThread {
 public:
  // `name`: at most 15 bytes, a literal; profilers and `top -H` show it.
  explicit BackgroundThread(const char* name);
  // After the running job. Returns at once in a child that the program has forked, as wait() does.
  ~BackgroundThread();
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  // Makes the thread if it is not there, so that run() cannot fail. It runs no signal handlers of
  // the program. Throws std::system_error.
  void start();
  // Requires start(), and that no job runs. The job throws nothing; it is destroyed on the thread.
  void run(std::function<void()> job);
  bool is_busy() const;
  // Until no job runs. Returns at once in a child that the program has forked: it has no thread.
  void wait() const;
  // The same until `gives_up()`, which is called about once a second, is true. False: a job runs.
  bool wait(const std::function<bool()>& gives_up) const;

 private:
  struct State;

  bool is_of_this_process() const;
  void run_jobs();

  const char* const name_;
  std::unique_ptr<State> state_;  // for both threads
  std::thread thread_;
  pid_t process_ = 0;  // that has the thread
};

}  // namespace cpprun::snapshot
