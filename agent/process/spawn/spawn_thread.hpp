// SpawnThread: starts the workers of a round, or one helper, one after the other, on a thread of
// its own. A start waits for execve, and the file system of the program may not answer; no loop may
// wait for it.
//
// The thread lives as long as this object, because the kernel kills a worker when the thread that
// spawned it ends (parent-death signal). It is never joined: it may wait inside the kernel.
//
// Thread: the loop's, unless noted. Owner: the host, or the preloader.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "agent/process/spawn/spawn.hpp"
#include "agent/process/spawn/start_ticket.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

class SpawnThread {
 public:
  // Starts one worker, in whatever way, and may block. Called on the spawn thread and destroyed
  // there, so it owns or shares everything it uses. The child must be a child of the spawn thread
  // or have a parent-death signal of its own. It names the child to the ticket before the child
  // runs its program.
  using Start = std::function<Result<Spawned>(SpawnContext&, StartTicket&)>;

  struct Outcome {
    size_t index = 0;  // of the start in its round
    Result<Spawned> spawned;
  };
  // The start that is under way.
  struct Pending {
    size_t index = 0;
    int child = 0;  // 0: there is none yet
  };

  // `on_end` is called when the last outcome of begin() waits for take(), on the spawn thread or
  // within the call that caused it. Earlier outcomes call nothing: a loop that woke up for each
  // worker would take the CPU from the spawn thread.
  explicit SpawnThread(std::function<void()> on_end);
  // Cancels what is under way and drops its outcome: the thread kills that child.
  ~SpawnThread();
  SpawnThread(const SpawnThread&) = delete;

  // Runs `starts` in order, up to the first error. Requires: !is_busy().
  void begin(std::vector<Start> starts);
  // Outcomes of begin() are still to come, or wait for take().
  bool is_busy() const;
  // Begins no further start. The outcome of the one that is under way follows; else none.
  void stop();
  // Begins no further start, and kills the child that has not run its program yet; its outcome
  // follows. Without such a child none follows.
  void cancel();
  // In the order of the starts.
  std::vector<Outcome> take();

  std::optional<Pending> pending() const;
  // The start whose child this is, while its outcome is not taken.
  std::optional<size_t> index_of(int pid) const;

  // Waits until no start is under way, at most `most`.
  void wait(Duration most);

 private:
  struct Job;
  struct State;
  void end_job(void (State::*end)());
  static void run(State& state);
  static void run_job(State& state, Job& job);
  static bool run_one(State& state, Job& job, size_t index, SpawnContext& context);

  const std::shared_ptr<State> state_;  // shared with the thread
};

}  // namespace cpprun
