// c10d's Works differ between backends in which functions may be called, how often and by which
// thread.
#include "cpprun/dist/work.hpp"

#include <ATen/ThreadLocalState.h>

#include <algorithm>

#include "cpprun/dist/backend/error_translation.hpp"
#include "cpprun/dist/collectives/work_state.hpp"

namespace cpprun::dist {
namespace {

constexpr std::chrono::microseconds kFirstPollInterval{50};
constexpr std::chrono::microseconds kPollIntervalMax{2'000};

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "unknown error";
  }
}

}  // namespace

Work::State::State(Kind kind, std::string where, std::shared_ptr<ProcessGroup::State> group,
                   c10::intrusive_ptr<c10d::Work> native, std::function<void()> finish)
    : kind_(kind),
      where_(std::move(where)),
      group_(std::move(group)),
      native_(std::move(native)),
      finish_(std::move(finish)) {}

Work::State::~State() {
  if (watcher_.joinable()) {
    if (!has_ended() && is_point_to_point()) watched_->abort();
    watcher_.join();
  }
  if (native_ && is_point_to_point()) group_->health.keep(std::move(native_));
}

bool Work::State::is_point_to_point() const {
  return kind_ == Kind::WaitedOnce || kind_ == Kind::FromAnybody;
}

bool Work::State::has_ended() const {
  const std::lock_guard lock(mutex_);
  return has_ended_;
}

void Work::State::end_with(std::exception_ptr error) {
  if (error && group_) group_->health.mark_broken(text_of(error));
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  has_ended_ = true;
  ended_now_.notify_all();
}

std::exception_ptr Work::State::reported(const std::exception_ptr& error) const {
  return group_ ? translate(error, where_) : error;
}

// Blocks until the backend has ended the work, then finishes it. Requires `waiting_` to be held.
void Work::State::settle() {
  std::exception_ptr error;
  try {
    // False: the destructor has aborted the work; it keeps `native_`.
    if (native_ && !native_->wait()) return;
    if (native_ && kind_ == Kind::FromAnybody) source_rank_ = native_->sourceRank();
    if (finish_) finish_();
  } catch (...) {
    error = reported(std::current_exception());
  }
  native_.reset();
  finish_ = nullptr;
  end_with(error);
}

void Work::State::wait() {
  if (!has_ended()) {
    const std::lock_guard turn(waiting_);
    if (!has_ended()) settle();
  }
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

void Work::State::start_watcher() {
  const std::unique_lock turn(waiting_, std::try_to_lock);
  if (!turn || watcher_.joinable() || has_ended()) return;
  watched_ = native_;
  watcher_ = std::thread([this] {
    const std::lock_guard inner(waiting_);
    if (!has_ended()) settle();
  });
}

bool Work::State::is_completed() {
  if (has_ended()) return true;
  if (kind_ != Kind::Polled) {
    start_watcher();
  } else if (const std::unique_lock turn(waiting_, std::try_to_lock); turn && !has_ended()) {
    if (!native_ || native_->isCompleted()) settle();
  }
  return has_ended();
}

bool Work::State::wait_for(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  auto poll_interval = kFirstPollInterval;
  while (!is_completed()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return false;
    std::unique_lock lock(mutex_);
    ended_now_.wait_until(lock, std::min(deadline, now + poll_interval),
                          [this] { return has_ended_; });
    poll_interval = std::min(poll_interval * 2, kPollIntervalMax);
  }
  wait();
  return true;
}

std::exception_ptr Work::State::exception() {
  if (!is_completed()) return nullptr;
  const std::lock_guard lock(mutex_);
  return error_;
}

// Lets `finish_` follow the backend's future. Nobody may wait for the result of then(), so an error
// breaks the group here. Requires `waiting_` to be held.
void Work::State::continue_native() {
  const auto before = dist::translated(where_, [this] { return native_->getFuture(); });
  const auto fail = [group = group_, where = where_](const std::exception_ptr& error) {
    const auto known = translate(error, where);
    group->health.mark_broken(text_of(known));
    return known;
  };
  native_ = c10::make_intrusive<FutureWork>(continued(before, std::move(finish_), fail));
  finish_ = nullptr;
  is_continued_ = true;
}

NativeFuture Work::State::future() {
  if (kind_ != Kind::Polled) {
    throw DistUnsupportedError(where_ +
                               ": gloo reports the end of this call to wait() only; call wait(), "
                               "then the function");
  }
  const std::lock_guard turn(waiting_);
  if (!native_ && !has_ended()) settle();
  if (has_ended()) {
    const std::lock_guard lock(mutex_);
    return ended_future(error_);
  }
  if (group_ && !is_continued_) continue_native();
  return native_->getFuture();
}

void Work::wait() {
  if (state_) state_->wait();
}

bool Work::wait_for(std::chrono::milliseconds timeout) {
  return !state_ || state_->wait_for(timeout);
}

bool Work::is_completed() const { return !state_ || state_->is_completed(); }

std::exception_ptr Work::exception() const { return state_ ? state_->exception() : nullptr; }

Work Work::then(std::function<void()> callback) const {
  const NativeFuture before = state_ ? state_->future() : ended_future(nullptr);
  const auto after = continued(before, at::wrapPropagateTLSState(std::move(callback)));
  return Work(std::make_shared<State>(State::Kind::Polled, std::string(), nullptr,
                                      c10::make_intrusive<FutureWork>(after), nullptr));
}

}  // namespace cpprun::dist
