#include "cpprun/worker/stop_request.hpp"

#include <atomic>

namespace cpprun::worker {
namespace {

std::atomic<bool> is_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

void request_stop() noexcept { is_requested.store(true, std::memory_order_relaxed); }

bool stop_requested() noexcept { return is_requested.load(std::memory_order_relaxed); }

}  // namespace cpprun::worker
