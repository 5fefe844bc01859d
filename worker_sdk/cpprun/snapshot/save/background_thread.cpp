#include "cpprun/snapshot/save/background_thread.hpp"

#include <pthread.h>
#include <unistd.h>

#include <utility>

#include "common/check.hpp"
#include "common/thread/blocked_signals.hpp"

namespace cpprun::snapshot {

BackgroundThread::~BackgroundThread() {
  if (!thread_.joinable()) return;
  if (!is_of_this_process()) {
    thread_.detach();
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
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
    const std::scoped_lock lock(mutex_);
    CPPRUN_CHECK(thread_.joinable() && !is_busy_);
    job_ = std::move(job);
    is_busy_ = true;
  }
  changed_.notify_all();
}

bool BackgroundThread::is_busy() const {
  const std::scoped_lock lock(mutex_);
  return is_busy_;
}

void BackgroundThread::wait() const {
  if (!is_of_this_process()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_busy_; });
}

void BackgroundThread::run_jobs() {
  ::pthread_setname_np(::pthread_self(), name_);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_busy_ || ends_; });
    if (!is_busy_) return;
    std::function<void()> job = std::exchange(job_, nullptr);
    lock.unlock();
    job();
    job = nullptr;  // before a waiting thread continues
    lock.lock();
    is_busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace cpprun::snapshot
