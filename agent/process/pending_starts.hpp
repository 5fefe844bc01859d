// PendingStarts: the starts of a round's workers on the spawn thread, until the host takes their
// outcomes, and how a stop ends those that have not returned.
//
// Thread: the loop's. Owner: the host.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/process/diagnostics/stuck_process.hpp"
#include "agent/process/spawn/spawn_thread.hpp"
#include "agent/process/streams/stream_fds.hpp"
#include "agent/process/worker_spec.hpp"
#include "agent/process/worker_starter.hpp"
#include "common/ids.hpp"
#include "common/loop/loop_poster.hpp"
#include "common/loop/timer.hpp"
#include "common/time.hpp"

namespace cpprun {

class PendingStarts {
 public:
  enum class State {
    Starting,
    BecameSlow,  // a start has not returned for limits::kSpawnTimeout; once per round
    Stopping,
    Overdue,  // it is being stopped and has not returned in time: kill()
  };

  // `token`: of the agent's processes. `on_time`: the last outcome waits for take(), or it is time
  // to take what there is and to look(). Never called within a call.
  PendingStarts(boost::asio::io_context& loop, std::shared_ptr<LoopPoster> poster,
                std::string token, std::function<void()> on_time);

  // The workers of a round; none is being started yet. Requires: !is_busy().
  void begin_round(const std::vector<WorkerSpec>& specs);
  // In the order of the specs.
  const std::vector<std::shared_ptr<StartingWorker>>& workers() const { return workers_; }
  // Starts them in order, up to the first error. `cgroup`: folder to start in; -1: none.
  void begin(const LogFiles& files, int cgroup, const WorkerFork& fork);
  // The round is over. Requires: !is_busy().
  void end_round();

  // Outcomes are still to come, or wait for take().
  bool is_busy() const { return spawner_.is_busy(); }
  // In order; each has its index in workers().
  std::vector<SpawnThread::Outcome> take();
  // Sets when on_time() follows.
  State look();
  // Whether look() has returned BecameSlow in this round.
  bool is_slow() const { return slow_index_.has_value(); }
  // Of the start that was slow. Requires: is_slow().
  const WorkerSpec& slow_spec() const { return workers_.at(slow_index_.value())->spec; }
  // The worker whose process this is, while its outcome is not taken.
  std::optional<LocalRank> worker_of(int pid) const;

  // Begins no further start, and lets the one under way return for `grace`, at most
  // limits::kStopStartTimeout. It may have run its program already.
  void stop(int signal, Duration grace);
  // Begins no further start, and kills the child that has not run its program yet.
  void kill();
  // What a worker gets that was being started during a stop.
  int stop_signal() const;
  // The grace of the stop is over.
  void end_grace() { stop_signal_ = 0; }

  // Of the start that has not returned since; unset: there is none.
  std::optional<Instant> killed_at() const;
  // Its child, at least `least` after kill().
  std::optional<StuckProcess> unended(Instant now, Duration least) const;

  // Waits until no start is under way, at most `most`.
  void wait(Duration most) { spawner_.wait(most); }

 private:
  const WorkerStarter starter_;
  std::vector<std::shared_ptr<StartingWorker>> workers_;
  int stop_signal_ = 0;  // 0: no stop, or its grace is over
  Instant kill_at_ = Instant::never();
  std::optional<Instant> killed_at_;
  std::optional<size_t> slow_index_;
  Instant last_start_at_;  // when the last outcome was taken, or the round began
  Timer timer_;
  SpawnThread spawner_;
};

}  // namespace cpprun
