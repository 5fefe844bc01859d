#include "common/thread/io_thread.hpp"

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>

#include "common/limits/agent.hpp"
#include "common/thread/detached_thread.hpp"

namespace cpprun {

struct IoThread::State {
  std::mutex mutex;
  std::condition_variable has_news;  // a task, or the end
  std::condition_variable task_ended;
  std::deque<Task> tasks;
  uint64_t posted = 0;
  uint64_t ended = 0;
  bool has_thread = false;
  bool is_closed = false;
};

IoThread::IoThread() : state_(std::make_shared<State>()) {}

IoThread::~IoThread() {
  const std::lock_guard lock(state_->mutex);
  state_->is_closed = true;
  state_->has_news.notify_all();
}

Status IoThread::start() {
  const std::lock_guard lock(state_->mutex);
  if (state_->has_thread) return {};
  Status started = start_detached_thread([state = state_] { run(*state); });
  state_->has_thread = started.ok();
  return started;
}

bool IoThread::post(Task task) {
  if (!start()) return false;
  std::unique_lock lock(state_->mutex);
  if (state_->tasks.size() >= limits::kIoTasks) return false;
  state_->tasks.push_back(std::move(task));
  ++state_->posted;
  lock.unlock();  // first: the thread would wake up only to wait for the mutex
  state_->has_news.notify_one();
  return true;
}

bool IoThread::wait(Duration most) {
  std::unique_lock lock(state_->mutex);
  const uint64_t wanted = state_->posted;
  return state_->task_ended.wait_for(lock, most, [&] { return state_->ended >= wanted; });
}

void IoThread::run(State& state) {
  ::pthread_setname_np(::pthread_self(), "cpprun-files");
  std::unique_lock lock(state.mutex);
  const auto has_news = [&state] { return state.is_closed || !state.tasks.empty(); };
  while (true) {
    state.has_news.wait(lock, has_news);
    if (state.is_closed) break;
    Task task = std::move(state.tasks.front());
    state.tasks.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // its captures may own open files, and close() may block as well
    lock.lock();
    ++state.ended;
    state.task_ended.notify_all();
  }
  const std::deque<Task> dropped = std::exchange(state.tasks, {});
  lock.unlock();
}

}  // namespace cpprun
