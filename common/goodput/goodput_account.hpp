// GoodputAccount: divides the time of a job, as one node sees it, among the phases of Goodput.
//
// Pure: the caller passes the times. The account divides each moment exactly once, so the phases
// sum to the time from begin() to the last call, and that of earlier submissions of the job, if the
// caller knows of any. Calls may come with times before the last one
// (several threads and the kernel measure them); such a call divides nothing twice.
//
// While workers run, the phase of a moment is known only later: that the workers imported is known
// when they connect, that they trained when the next heartbeat comes. So the account keeps the end
// of what is divided, and at() divides the rest for a reader without changing the account.
#pragma once

#include <cstdint>
#include <optional>

#include "common/goodput/goodput.hpp"
#include "common/time.hpp"

namespace cpprun {

class GoodputAccount {
 public:
  void begin(Instant at);  // the launcher was started
  // After begin(): earlier submissions have left this record, and the account continues from there.
  void resume_from(const GoodputRecord& record);
  // That record's newest submission turns out to be this one, which this node has joined late.
  void join(const GoodputRecord& record);
  // The node waits for a round.
  void wait(Instant at) { enter(GoodputPhase::Waiting, at); }
  // A round has formed. `best_step`: the last step that any earlier round had finished, as far as
  // the job knows; -1: unknown.
  void form(Instant at, int64_t best_step);
  void run(Instant at);  // its workers are spawned; they may have connected and made steps before
  // A worker has connected to the agent; the last call before the first step counts.
  void connect(Instant at) { connected_at_ = at; }
  // The workers report steps, though they have not finished one in this round yet.
  void expect_steps() { counts_steps_ = true; }
  // A worker has finished its first step of this round, this one.
  void step(Instant at, int64_t step);
  // The newest heartbeat of the worker that is furthest ahead: when it came, its step, and how long
  // this worker's training has waited for saves in this round.
  void beat(Instant at, int64_t step, Duration saved);
  // The workers made no progress after `since`.
  void hang(Instant since) { hangs_since_ = since; }
  void fail() { ++done_.failures; }  // the round ends by a failure
  void stop(Instant at);             // the workers are being stopped, or the first one failed
  void leave(Instant at);            // all workers are gone

  Goodput at(Instant now) const;
  // Without the rest that is not divided yet. No phase of it ever shrinks.
  const Goodput& divided() const { return done_; }
  Goodput own(Instant now) const;  // of this submission; at() and divided() are of all
  // For the next submission.
  GoodputRecord record(Instant now) const { return {earlier_, own(now), "", best_step()}; }
  // Some worker repeats steps, so that the moment of the next heartbeats matters.
  bool is_redoing() const { return is_running_ && has_stepped_ && last_step_ < best_step_; }
  bool is_running() const { return is_running_; }
  // The last step that any round had finished; -1: unknown.
  int64_t best_step() const;

 private:
  void enter(GoodputPhase phase, Instant at);
  void add(GoodputPhase phase, Instant until);
  void add_training(Instant until, int64_t step);
  void close(Instant at);

  Goodput earlier_{.submissions = 0};
  Goodput done_;                                 // with those
  GoodputPhase phase_ = GoodputPhase::Starting;  // unless workers run
  Instant divided_until_;
  int64_t best_step_ = -1;  // before this round

  // Of the newest round.
  bool is_running_ = false;
  bool has_stepped_ = false;
  bool counts_steps_ = false;
  std::optional<Instant> connected_at_;
  std::optional<Instant> hangs_since_;
  int64_t last_step_ = -1;
  Duration saved_{};  // of the worker's saves, the part that is divided
  int64_t rounds_ = 0;
};

}  // namespace cpprun
