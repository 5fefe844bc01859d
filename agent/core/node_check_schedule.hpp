// NodeCheckSchedule: when an agent runs --node-check, and the newest result. The check runs before
// the agent joins, after each round, and now and then while the node waits: a spare may break, and
// a node that has failed may be good again.
//
// Pure: no I/O, clock or randomness.
#pragma once

#include <string>
#include <utility>

#include "common/limits/rendezvous.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

class NodeCheckSchedule {
 public:
  // Without a check the result is always Passed.
  explicit NodeCheckSchedule(bool is_on) : is_on_(is_on) {
    if (is_on) result_.state = control::CheckState::Pending;
  }

  bool is_on() const { return is_on_; }
  // The older result counts no more. True: the caller starts the check; false: there is none, or
  // the one that runs will do.
  bool begin() {
    if (!is_on_) return false;
    result_ = {control::CheckState::Pending};
    return repeat();
  }
  // The same, but the older result counts until the new one is there.
  bool repeat() { return is_on_ && !std::exchange(is_running_, true); }
  // While the node waits.
  bool is_due(Instant now) const { return now >= next(); }
  Instant next() const { return is_running_ ? Instant::never() : again_at_; }

  // `why`: empty: it has passed. True: the result is another one than the last.
  bool on_result(Instant now, const std::string& why) {
    is_running_ = false;
    const bool is_good = why.empty();
    result_ = {is_good ? control::CheckState::Passed : control::CheckState::Failed, why};
    again_at_ = now + (is_good ? limits::kSpareCheckInterval : limits::kNodeCheckRetryInterval);
    return std::exchange(was_good_, is_good) != is_good;
  }
  const control::NodeCheck& result() const { return result_; }
  // Of the last result, for people.
  std::string text() const {
    return result_.why.empty() ? "the node check has passed again"
                               : "the node check (--node-check) failed, so this node takes part in "
                                 "no round: " +
                                     result_.why;
  }

 private:
  bool is_on_;
  bool is_running_ = false;
  bool was_good_ = true;
  control::NodeCheck result_;
  Instant again_at_ = Instant::never();
};

}  // namespace cpprun::agent
