// Destroys groups: destroy_process_group, the guard, and the exit of a process that called neither.
//
// Gloo cannot interrupt a collective, and its destructor waits for running ones. Hence a thread of
// its own destroys each group, and the caller waits for it for a limited time. The process does not
// exit while such a thread uses NCCL: CUDA ends before it, and the thread would crash.
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <thread>

#include "cpprun/dist/group/group_registry.hpp"
#include "cpprun/dist/group/make_group.hpp"

namespace cpprun::dist {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDestroyTimeout{5'000};  // destroy_process_group, the end of a scope
constexpr milliseconds kUnwindTimeout{300};     // unwinding: the error must be reported soon
constexpr milliseconds kExitTimeout{1'000};
// NCCL aborts the collectives that still run, so a communicator ends by itself. On a busy GPU that
// has been seen to take more than 5 s.
constexpr milliseconds kNcclTimeout{60'000};

using NativeGroup = c10::intrusive_ptr<c10d::ProcessGroup>;

// Threads that destroy groups of NCCL.
class NcclThreads {
 public:
  static NcclThreads& own() {
    static auto& own = *new NcclThreads;  // never destroyed, because threads may use it at the exit
    return own;
  }

  void begin() {
    const std::lock_guard lock(mutex_);
    ++running_;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    --running_;
    has_ended_.notify_all();
  }
  // False: some still run.
  bool wait_for(milliseconds limit) {
    std::unique_lock lock(mutex_);
    return has_ended_.wait_for(lock, limit, [this] { return running_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable has_ended_;
  int running_ = 0;
};

void end_group(NativeGroup group, const std::function<void()>& leave, bool aborts) noexcept {
  try {
    if (leave) leave();
    if (aborts) {
      group->abort();
    } else {
      group->shutdown();
    }
  } catch (...) {
    // The peers or the store may be gone; the process's end releases the rest.
  }
  drop_backends(*group);
}

// False: the group has not ended within `limit`; its thread continues alone.
bool retire(const registry::Group& state, milliseconds limit, bool aborts) {
  NativeGroup group;
  {
    const std::lock_guard lock(state->mutex);
    if (state->destroyed.exchange(true)) return true;
    group = std::move(state->pg);
    state->pg = nullptr;
    state->store = nullptr;
  }
  if (!group) return true;
  state->health.drop_pending();
  auto ended = std::make_shared<std::promise<void>>();
  auto future = ended->get_future();
  const bool is_nccl = state->has_nccl();
  if (is_nccl) NcclThreads::own().begin();
  std::thread([group = std::move(group), leave = std::move(state->leave), aborts, ended,
               is_nccl]() mutable {
    end_group(std::move(group), leave, aborts);
    if (is_nccl) NcclThreads::own().end();
    ended->set_value();
  }).detach();
  if (is_nccl && !aborts) limit = kNcclTimeout;
  return future.wait_for(limit) == std::future_status::ready;
}

void retire_all(milliseconds limit, bool aborts) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (const registry::Group& state : registry::remove_all()) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
    if (retire(state, std::max(left, milliseconds(0)), aborts) || aborts) continue;
    std::fprintf(stderr,
                 "cpprun: %s was destroyed while a collective of it still ran; that one is left to "
                 "end by its timeout of %lld ms\n",
                 describe(*state).c_str(), static_cast<long long>(state->timeout.count()));
  }
}

void end_at_exit(int status, void*) {
  retire_all(kExitTimeout, true);
  if (NcclThreads::own().wait_for(kNcclTimeout)) return;
  std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace

void retire_at_exit() {
  static const int registered = ::on_exit(end_at_exit, nullptr);
  static_cast<void>(registered);
}

void abandon_groups() { retire_all(kUnwindTimeout, true); }

void destroy_process_group() { retire_all(kDestroyTimeout, false); }

void destroy_process_group(const ProcessGroup& group) {
  if (!group || group.state() == registry::default_group()) return destroy_process_group();
  if (registry::remove(group.state())) retire(group.state(), kDestroyTimeout, false);
}

ProcessGroupGuard::~ProcessGroupGuard() {
  if (!group_ || group_.state() != registry::default_group()) return;
  try {
    const bool unwinds = std::uncaught_exceptions() > 0;
    retire_all(unwinds ? kUnwindTimeout : kDestroyTimeout, unwinds);
  } catch (...) {
    // No thread or no memory: the process ends soon, and the group with it.
  }
}

}  // namespace cpprun::dist
