#include "cpprun/worker/agent_link.hpp"

#include <atomic>

#include "common/machine/clock.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/internal/own_agent.hpp"
#include "cpprun/worker/internal/stack_trace.hpp"

namespace cpprun::worker {
namespace {

constexpr int64_t kStepsOfMean = 8;  // for the mean duration of a step

std::atomic<bool> is_stop_requested{false};
std::atomic<bool> has_stepped{false};
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

AgentSocket& own_agent() {
  static auto* const link = [] {
    auto* const made = new AgentSocket(AgentSocket::connect(environment_or_default().agent));
    if (made->page() != nullptr && made->page()->version >= 3) publish_stack_file(*made->page());
    return made;
  }();
  return *link;
}

void write_heartbeat(int64_t step, Phase phase) {
  WorkerPage* page = own_agent().page();
  if (page == nullptr) return;
  const int64_t now = read_clock(CLOCK_MONOTONIC).count();  // the vDSO's: no system call
  const int64_t before = page->heartbeat_ns.load(std::memory_order_relaxed);
  const int64_t steps = step - page->step.load(std::memory_order_relaxed);
  const int64_t mean = page->step_ns.load(std::memory_order_relaxed);
  const bool was_training =
      page->phase.load(std::memory_order_relaxed) > static_cast<uint32_t>(Phase::Ready);
  if (before > 0 && steps > 0 && was_training) {
    const int64_t takes = (now - before) / steps;
    page->step_ns.store(mean == 0 ? takes : mean + (takes - mean) / kStepsOfMean,
                        std::memory_order_relaxed);
  }
  page->step.store(step, std::memory_order_relaxed);
  page->phase.store(static_cast<uint32_t>(phase), std::memory_order_relaxed);
  page->heartbeat_ns.store(now, std::memory_order_release);
}

static void report_first_step(int64_t step) {
  write_heartbeat(step, Phase::Training);
  if (!has_stepped.exchange(true) && own_agent().has_first_step()) {
    own_agent().send(channel::FirstStep{step});
  }
}

// Of each step: what only the first one does is a function of its own, so this one needs no frame.
void heartbeat(int64_t step, Phase phase) {
  const bool is_first = phase == Phase::Training && !has_stepped.load(std::memory_order_relaxed);
  if (is_first) return report_first_step(step);
  write_heartbeat(step, phase);
}

void count_collective() {
  if (WorkerPage* page = own_agent().page())
    page->collectives.fetch_add(1, std::memory_order_relaxed);
}

void report_ready() {
  WorkerPage* page = own_agent().page();
  if (page == nullptr || page->is_ready.exchange(1) != 0) return;
  page->phase.store(static_cast<uint32_t>(Phase::Ready), std::memory_order_relaxed);
  own_agent().send(channel::Ready{});
}

void report_to_agent(std::string_view why) {
  if (has_agent()) own_agent().send(channel::Report{std::string(why)});
}

void request_stop() noexcept { is_stop_requested.store(true, std::memory_order_relaxed); }

bool should_stop() {
  if (is_stop_requested.load(std::memory_order_relaxed)) return true;
  WorkerPage* page = own_agent().page();
  return page != nullptr && page->wants_stop.load(std::memory_order_acquire) != 0;
}

bool has_agent() { return own_agent().page() != nullptr; }

}  // namespace cpprun::worker
