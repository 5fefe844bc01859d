// NodeWorkers: the workers of a node and its reaper process, as the operating system below the
// agent runs them: they end, save, regroup, outlive SIGKILL, stand still with their host, and are
// killed when the worker lease ends.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/effects.hpp"
#include "common/failure/worker_exit.hpp"
#include "tests/support/sim/node_spec.hpp"
#include "tests/support/sim/sim_context.hpp"

namespace cpprun::sim {

class NodeWorkers {
 public:
  // What the agent sees of them, and what they need to know of the node.
  struct Events {
    std::function<bool()> is_running;  // the agent
    std::function<bool()> is_disk_full;
    // Calls this when the agent is not frozen.
    std::function<void(std::function<void()>)> when_awake;
    // The worker can regroup, and has completed a step.
    std::function<void()> on_elastic;
    // `is_excused`: the reaper process has killed workers of the round.
    std::function<void(const WorkerExit&, bool is_excused)> on_exit;
    // No worker is left (`is_empty`), or those that are left wait for the next round.
    std::function<void(bool is_empty)> on_round_over;
    std::function<void()> on_saved;  // all have ended, and one has saved
    std::function<void()> on_stuck;  // SIGKILL did not end one in time
  };

  // `spec` and `prng` must outlive this object.
  NodeWorkers(SimContext& context, const NodeSpec& spec, Prng& prng, Events events)
      : context_(context), spec_(spec), prng_(prng), events_(std::move(events)) {}

  // No other worker may be alive then, but for survivors.
  bool may_start() const;
  // Forgets those of the round before.
  void begin_round(RoundName round);
  // The workers of the round. `base_rank`: of the first one.
  void start(const std::vector<WorkerBehavior>& lives, int64_t base_rank);
  void stop(const agent::StopWorkers& effect);
  void end_saving(const agent::EndSaving& effect);
  // True: the reaper process has killed the workers at the former deadline.
  bool set_lease(Instant deadline);
  // They are killed at some time from now on, without being at fault.
  void kill_all(Duration within);

  // ---- faults
  // A worker ends by itself immediately.
  void fail(size_t local_rank, int exit_code);
  void pause();   // the host stands still
  void resume();  // it runs again
  void lose_power();

  // ---- observation
  const WorkerExit& worker(size_t local_rank) const { return workers_.at(local_rank).end; }
  bool are_paused() const { return paused_at_.has_value(); }
  int64_t live() const;
  bool has_running() const;  // workers that SIGKILL has not stopped
  bool can_save() const;
  // None counts as live.
  bool is_idle() const;
  int64_t starts() const { return starts_; }  // of rounds
  // ", 2 of them from the round before"; "" if none is.
  std::string kept_text() const;

 private:
  struct Worker {
    WorkerExit end;
    Instant ends_at = Instant::never();  // true time
    bool is_alive = true;
    bool is_counted = true;  // counted as live by the checks
    bool is_excused =
        false;  // killed by the reaper process or with its agent: no failure of its own
    bool ignores_sigterm = false;
    Duration outlives_kill{};
    Instant killed_at = Instant::never();  // true time; only of workers that outlive SIGKILL
    bool can_save = false;
    Duration releases_in{};  // zero: it can't regroup
    bool is_asked = false;   // to regroup
    bool is_released = false;
    bool has_left_group = false;  // also if it is stopped afterwards
    bool is_saving = false;       // asked to save, and not signalled
    Instant ready_at;             // true time
    Duration stops_in{};
  };

  Instant local_now() const { return spec_.clock.local(context_.event_queue.now()); }
  void trace(const std::string& what) const {
    context_.trace.line(context_.event_queue.now(), spec_.label, what);
  }

  void stop_worker(Worker& worker, int signal, Duration grace);
  void ask_to_regroup(size_t local_rank);
  bool is_any_able_to_regroup() const;
  void release(size_t local_rank);
  void report_end();
  void end_worker_at(Worker& worker, Instant when, int exit_code);
  void kill_at(Worker& worker, Instant when);
  void stop_the_killed();
  void watch_killed();
  void on_stuck_time();
  void reap();
  void shift(Worker& worker, Instant paused_at);
  void arm_reaper();
  void on_reaper();
  void hold_workers();
  void end_hold();
  void count_live();
  void uncount(Worker& worker);

  SimContext& context_;
  const NodeSpec& spec_;
  Prng& prng_;
  const Events events_;
  std::vector<Worker> workers_;
  RoundName round_;
  std::optional<Instant> paused_at_;
  // the reaper process's deadline, in the host's time
  Instant worker_lease_deadline_ = Instant::never();
  bool has_reaper_killed_ = false;     // at the former deadline
  std::optional<Instant> held_until_;  // true time: the reaper process stops the workers until then
  std::optional<Instant> killed_at_;   // true time: when the agent first sent SIGKILL
  Duration stuck_after_{};             // from then on
  int64_t starts_ = 0;
  bool has_survivors_ = false;  // on_round_over() came since, and they wait
  bool had_survivors_ = false;  // when this round's workers started
};

}  // namespace cpprun::sim
