// HangWatch: detects hung workers from regular observations of all workers of a node.
//
// Pure: no I/O, no clock. The daemon collects stacks of a hung worker, and Agent ends the round.
// What HangWatch can know:
//
// - A worker that sends heartbeats (worker SDK, cpprun_worker) hangs when they stop.
// - Of other workers it sees CPU time and I/O only. A worker that waits for others then looks like
//   one that hangs, so all workers of the node must be idle.
// - Startup and saving may take long. A worker in these phases hangs only if it is idle as well;
//   while it is busy, the others may wait for it.
// - A worker in a section that its program has named has the limit of that section
//   (section_limits.hpp).
// - While a debugger is attached to a worker, no worker hangs.
//
// --hang-timeout=SECONDS sets the limit. With `auto` HangWatch learns limits, and a hang ends the
// round only where it is certain: a signal has stopped a worker, or all workers send heartbeats and
// none of them does anything any more. It reports uncertain hangs once a round.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "agent/core/hangs/section_limits.hpp"
#include "common/hang_times.hpp"
#include "common/time.hpp"
#include "common/worker_observation.hpp"

namespace cpprun::agent {

struct Hang {
  WorkerObservation worker;  // the worker that the others wait for, as far as known
  std::string how;           // for WorkerExit::hang
  Duration silent{};         // since the last sign of progress
  bool is_guess = false;     // only the longest silence distinguishes the worker
  bool is_sure = false;      // true: end the round; false: only log it
};

class HangWatch {
 public:
  explicit HangWatch(HangConfig config) : config_(config) {}

  void begin_round(Instant now);
  void end_round();
  // What these workers show of the length of sections, for later rounds.
  void learn(const std::vector<WorkerObservation>& workers) {
    for (const WorkerObservation& worker : workers) sections_.learn(worker.sections);
  }
  // What earlier jobs have learned, and what has been learned so far.
  void learn(const HangTimes& times);
  HangTimes learned() const;

  // Evaluates an observation of all live workers. May come at any time, and is due at next_look().
  // After a sure hang the round needs no further observation.
  std::optional<Hang> look(Instant now, const std::vector<WorkerObservation>& workers);
  Instant next_look() const { return next_observation_; }

  // How long an observed worker has shown no progress at `now`.
  Duration silent(Instant now, const WorkerObservation& worker) const {
    return silence(tracks_.at(worker.local_rank.value), now);
  }
  // What is known of an observed worker's silence at `now`.
  std::string silence_text(Instant now, const WorkerObservation& worker) const;

 private:
  static constexpr size_t kPhases = 6;
  struct Track {
    int pid = 0;
    Duration cpu{};
    uint64_t bytes = 0;
    Instant moved_at;                          // the last observation that showed work
    Instant stopped_since = Instant::never();  // never: not stopped
    Instant beat_at;                           // time of the newest heartbeat
    std::optional<Heartbeat> beat;
    std::optional<SectionTimes> section;  // in which it is
    Instant section_since;
  };

  Duration interval() const;
  Duration stopped_limit() const;
  Duration limit(const Track& track) const;
  Duration silence(const Track& track, Instant now) const;
  bool is_in_long_work(const Track& track, Instant now) const;
  // From when on the time in its section counts.
  Instant section_begun(const Track& track) const {
    return std::max({track.section_since, track.beat_at, awake_since_});
  }
  // Longer in its section than the program allows. This needs no other evidence.
  bool is_over_limit(const Track& track, Instant now) const {
    return track.section && track.section->limit > Duration{} &&
           silence(track, now) >= track.section->limit;
  }
  void update(Instant now, const WorkerObservation& worker, Track& track);
  void restart_silence(Instant now);
  std::optional<Hang> detect(Instant now, const std::vector<WorkerObservation>& workers);
  std::optional<Hang> find_stopped(Instant now,
                                   const std::vector<WorkerObservation>& workers) const;
  bool is_breach(Instant now) const;
  Hang describe(Instant now, const std::vector<WorkerObservation>& workers) const;
  const WorkerObservation& find_outlier(Instant now, const std::vector<WorkerObservation>& workers,
                                        std::string& why) const;

  const HangConfig config_;
  std::map<int64_t, Track> tracks_;  // by local rank
  // Learned in all rounds: the longest gaps between heartbeats, by phase, and the sections.
  std::array<Duration, kPhases> longest_gap_{};
  SectionLimits sections_;
  Instant observed_at_;
  Instant awake_since_;  // silence before this time does not count
  Instant next_observation_ = Instant::never();
  bool is_reported_ = false;
};

// "training"; "phase 77" for an unknown number.
std::string phase_name(uint32_t phase);

}  // namespace cpprun::agent
