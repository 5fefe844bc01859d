// Destroys groups: destroy_process_group, the guard, and the exit of a process that called neither.
//
// Gloo cannot interrupt a collective, and its destructor waits for running ones. Hence a thread of
// its own destroys each group, and the caller waits for it for a limited time.
#include <chrono>
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

using NativeGroup = c10::intrusive_ptr<c10d::ProcessGroup>;

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
  std::thread([group = std::move(group), leave = std::move(state->leave), aborts, ended]() mutable {
    end_group(std::move(group), leave, aborts);
    ended->set_value();
  }).detach();
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

}  // namespace

void retire_at_exit() {
  static const int registered = std::atexit([] { retire_all(kExitTimeout, true); });
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
