#include "cpprun/snapshot/save/background_thread.hpp"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "common/check.hpp"
#include "common/thread/blocked_signals.hpp"

namespace cpprun::snapshot {
namespace {

constexpr std::chrono::seconds kLookInterval{1};

}  // namespace

struct BackgroundThread::State {
  std::mutex mutex;  // guards the other members
  std::condition_variable changed;
  std::function<void()> job;
  bool is_busy = false, ends = false;
};

BackgroundThread::BackgroundThread(const char* name)
    : name_(name), state_(std::make_unique<State>()) {}

BackgroundThread::~BackgroundThread() {
  if (!thread_.joinable()) return;
  if (!is_of_this_process()) {
    thread_.detach();
    // Its destructor waits for the thread, which was in changed.wait() at the fork.
    static_cast<void>(state_.release());
    return;
  }
  {
    const std::scoped_lock lock(state_->mutex);
    state_->ends = true;
  }
  state_->changed.notify_all();
  thread_.join();
}

bool BackgroundThread::is_of_this_process() const { return process_ == ::getpid(); }

void BackgroundThread::start() {
  if (thread_.joinable()) return;
  const BlockedSignals blocked;
  process_ = ::getpid();
  thread_ = std::thread([this] { run_jobs(); });
}

void BackgroundThread::run(std::function<void()> job) {
  {
    const std::scoped_lock lock(state_->mutex);
    CPPRUN_CHECK(thread_.joinable() && !state_->is_busy);
    state_->job = std::move(job);
    state_->is_busy = true;
  }
  state_->changed.notify_all();
}

bool BackgroundThread::is_busy() const {
  if (!is_of_this_process()) return false;
  const std::scoped_lock lock(state_->mutex);
  return state_->is_busy;
}

void BackgroundThread::wait() const {
  if (!is_of_this_process()) return;
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return !state_->is_busy; });
}

bool BackgroundThread::wait(const std::function<bool()>& gives_up) const {
  if (!is_of_this_process()) return true;
  std::unique_lock lock(state_->mutex);
  while (!state_->changed.wait_for(lock, kLookInterval, [this] { return !state_->is_busy; })) {
    if (gives_up()) return false;
  }
  return true;
}

void BackgroundThread::run_jobs() {
  ::pthread_setname_np(::pthread_self(), name_);
  std::unique_lock lock(state_->mutex);
  for (;;) {
    state_->changed.wait(lock, [this] { return state_->is_busy || state_->ends; });
    if (!state_->is_busy) return;
    std::function<void()> job = std::exchange(state_->job, nullptr);
    lock.unlock();
    job();
    job = nullptr;  // before a waiting thread continues
    lock.lock();
    state_->is_busy = false;
    state_->changed.notify_all();
  }
}

}  // namespace cpprun::snapshot
