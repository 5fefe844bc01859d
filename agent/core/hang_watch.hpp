// HangWatch: tells workers that hang from workers that take long, by looking at all workers of a
// node now and then.
//
// A core: no I/O, no clock. Not what is done about a hang: the daemon collects evidence, Agent ends
// the round. What it can know:
//
// - A worker that sends heartbeats (worker SDK, cpprun_worker) hangs when they cease.
// - Of others only CPU time and I/O are seen, which is weaker: one that waits for others looks like
//   one that hangs, so all of a node must be quiet.
// - Starting and saving may take long; there a worker hangs only if it is quiet as well, and while
//   it is not the others may wait for it.
// - While a debugger is attached to one of them, none hangs.
//
// With --hang-timeout=SECONDS that is the limit. With auto limits are learned, and the round is
// ended only where nobody can be wrong about it: a worker is stopped, or all send heartbeats and
// none of them does anything any more. Everything else is said, once a round.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "common/time.hpp"
#include "common/worker_observation.hpp"

namespace cpprun::agent {

struct Hang {
  WorkerObservation worker;  // the odd one out
  std::string how;           // as WorkerExit::hang
  bool is_sure = false;      // the round is to be ended; else it is only worth a word
};

class HangWatch {
 public:
  explicit HangWatch(HangConfig config) : config_(config) {}

  void begin_round(Instant now);
  void end_round();

  // A look at all live workers. May come at any time; is due at next_look(). After a hang that is
  // sure there is no further look in this round.
  std::optional<Hang> look(Instant now, const std::vector<WorkerObservation>& workers);
  Instant next_look() const { return next_look_; }

 private:
  static constexpr size_t kPhases = 6;
  struct Track {
    int pid = 0;
    Duration cpu{};
    uint64_t bytes = 0;
    Instant moved_at;                          // the last look at which it had done something
    Instant stopped_since = Instant::never();  // never: it is not
    Instant beat_at;                           // its newest heartbeat, if it has sent any
    std::optional<Heartbeat> beat;
    std::array<Duration, kPhases> longest_gap{};  // between heartbeats, by phase
  };

  Duration interval() const;
  Duration stopped_limit() const;
  Duration limit(const Track& track) const;
  Duration silence(const Track& track, Instant now) const;
  bool is_excused(const Track& track, Instant now) const;
  void note(Instant now, const WorkerObservation& worker, Track& track) const;
  void wake_up(Instant now);
  std::optional<Hang> judge(Instant now, const std::vector<WorkerObservation>& workers);
  std::optional<Hang> find_stopped(Instant now,
                                   const std::vector<WorkerObservation>& workers) const;
  bool is_breach(Instant now) const;
  Hang describe(Instant now, const std::vector<WorkerObservation>& workers) const;
  const WorkerObservation& odd_one_out(Instant now, const std::vector<WorkerObservation>& workers,
                                       std::string& why) const;

  const HangConfig config_;
  std::map<int64_t, Track> tracks_;  // by local rank
  Instant looked_at_;
  Instant awake_since_;  // no silence counts from before
  Instant next_look_ = Instant::never();
  bool is_said_ = false;
};

// "training"; "phase 77" for a number that is none.
std::string phase_name(uint32_t phase);

}  // namespace cpprun::agent
