#include "common/goodput/goodput_account.hpp"

#include <algorithm>
#include <utility>

namespace cpprun {

void GoodputAccount::begin(Instant at) {
  *this = GoodputAccount();
  divided_until_ = at;
}

void GoodputAccount::resume_from(const GoodputRecord& record) {
  earlier_ = record.earlier;
  earlier_ += record.newest;
  done_ += earlier_;
  best_step_ = std::max(best_step_, record.best_step);
}

void GoodputAccount::join(const GoodputRecord& record) {
  earlier_ = record.earlier;
  done_.submissions = earlier_.submissions + 1;
}

// Divides the time until then, which belongs to `phase`.
void GoodputAccount::add(GoodputPhase phase, Instant until) {
  if (until <= divided_until_) return;
  done_[phase] += until - divided_until_;
  divided_until_ = until;
}

void GoodputAccount::enter(GoodputPhase phase, Instant at) {
  close(at);
  is_running_ = false;
  phase_ = phase;
}

void GoodputAccount::form(Instant at, int64_t best_step) {
  enter(GoodputPhase::Starting, at);
  best_step_ = std::max(best_step_, best_step);
  has_stepped_ = counts_steps_ = false;
  connected_at_.reset();
  hangs_since_.reset();
  last_step_ = -1;
  saved_ = Duration{};
}

void GoodputAccount::run(Instant at) {
  enter(GoodputPhase::Starting, at);
  is_running_ = true;
  if (rounds_++ > 0) ++done_.restarts;
}

void GoodputAccount::step(Instant at, int64_t step) {
  if (std::exchange(has_stepped_, true)) return;
  last_step_ = step;
  if (!is_running_) return;
  if (connected_at_) add(GoodputPhase::Importing, std::min(*connected_at_, at));
  add(GoodputPhase::Initialising, at);
}

void GoodputAccount::beat(Instant at, int64_t step, Duration saved) {
  if (!is_running_ || !has_stepped_) return;
  if (at > divided_until_) {
    const Duration since = at - divided_until_;
    const Duration waited = std::clamp(saved - saved_, Duration{}, since);
    saved_ += waited;
    add(GoodputPhase::Saving, divided_until_ + waited);
    add_training(at, step);
  }
  last_step_ = std::max(last_step_, step);
}

// Steps between two heartbeats share the time equally.
void GoodputAccount::add_training(Instant until, int64_t step) {
  const bool was_redoing = last_step_ < best_step_;
  if (was_redoing && step > best_step_) {
    // Steps come from workers and peers, so their differences may exceed an int64_t.
    const double last = static_cast<double>(last_step_);
    const double redone =
        (static_cast<double>(best_step_) - last) / (static_cast<double>(step) - last);
    add(GoodputPhase::Redone,
        divided_until_ + seconds(to_seconds(until - divided_until_) * std::min(redone, 1.0)));
  } else if (was_redoing) {
    add(GoodputPhase::Redone, until);
  }
  add(GoodputPhase::Training, until);
}

void GoodputAccount::stop(Instant at) { enter(GoodputPhase::Stopping, at); }

void GoodputAccount::leave(Instant at) {
  enter(GoodputPhase::Waiting, at);
  best_step_ = best_step();
  last_step_ = -1;
}

int64_t GoodputAccount::best_step() const { return std::max(best_step_, last_step_); }

// Divides the time until `at`.
void GoodputAccount::close(Instant at) {
  if (!is_running_) return add(phase_, at);
  const Instant moved_until = std::min(hangs_since_.value_or(at), at);
  if (has_stepped_) {
    add(is_redoing() ? GoodputPhase::Redone : GoodputPhase::Training, moved_until);
  } else if (counts_steps_) {
    if (connected_at_) add(GoodputPhase::Importing, std::min(*connected_at_, moved_until));
    add(connected_at_ ? GoodputPhase::Initialising : GoodputPhase::Importing, moved_until);
  } else {
    add(GoodputPhase::Unknown, moved_until);
  }
  if (hangs_since_) add(GoodputPhase::Hanging, at);
}

Goodput GoodputAccount::at(Instant now) const {
  GoodputAccount copy = *this;
  copy.close(now);
  return copy.done_;
}

Goodput GoodputAccount::own(Instant now) const {
  Goodput all = at(now);
  return all -= earlier_;
}

}  // namespace cpprun
