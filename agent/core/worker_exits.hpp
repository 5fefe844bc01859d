// WorkerExits: the exits of one node's workers in a round, and what they mean for the job. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "common/failure/worker_exit.hpp"
#include "common/ids.hpp"

namespace cpprun::agent {

class WorkerExits {
 public:
  // Forgets the previous round, but not last_failed_round().
  void begin_round();

  // This worker reports its steps and has finished none in this round. Call before add().
  void on_no_step(LocalRank worker) { unstepped_.insert(worker.value); }
  // The agent ends the round because this worker hangs. Its exit gets the hang's description.
  void on_hang(const WorkerExit& hung) { hung_ = hung; }
  void add(const WorkerExit& exit);
  // Workers stay for the next round. They have saved nothing.
  void on_released() { are_some_released_ = true; }

  size_t size() const { return exits_.size(); }
  // The last step that any of the workers finished; -1: unknown.
  int64_t last_step() const;
  // Every worker has saved, has finished, or had not begun.
  bool have_lost_nothing() const;
  // Some worker can continue after a restart of the same command.
  bool can_resume() const;
  // Some worker has saved on request.
  bool have_saved() const;
  // The first exit with a cause of its own, as the coordinator gets it; unset: none.
  std::optional<WorkerExit> own_failure() const;
  // The worker lease ends: the reaper process may have killed workers, which is no failure of
  // theirs or of this host. own_failure() is empty until the next round.
  void excuse() { are_excused_ = true; }

  // Remembers this round as the last failed one, if any exit is a failure.
  void keep_if_failed();
  const std::vector<WorkerExit>& last_failed_round() const { return last_failed_round_; }

 private:
  bool is_resumable(const WorkerExit& exit) const;

  std::vector<WorkerExit> exits_;
  std::set<int64_t> unstepped_;  // local ranks of workers that finished no step
  std::optional<WorkerExit> hung_;
  bool are_excused_ = false;
  bool are_some_released_ = false;
  std::vector<WorkerExit> last_failed_round_;
};

}  // namespace cpprun::agent
