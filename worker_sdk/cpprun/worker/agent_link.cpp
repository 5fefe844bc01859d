#include "cpprun/worker/agent_link.hpp"

#include <time.h>

#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/internal/agent_socket.hpp"
#include "cpprun/worker/stop_request.hpp"

namespace cpprun::worker {
namespace {

// Never destroyed: other threads may beat while the program ends.
AgentSocket& agent() {
  static auto* const link = [] {
    const Result<Environment>& found = environment();
    return new AgentSocket(AgentSocket::connect(found ? found->agent : std::string()));
  }();
  return *link;
}

int64_t now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);  // the vDSO's: no system call
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

void heartbeat(int64_t step, Phase phase) {
  WorkerPage* page = agent().page();
  if (page == nullptr) return;
  page->step.store(step, std::memory_order_relaxed);
  page->phase.store(static_cast<uint32_t>(phase), std::memory_order_relaxed);
  page->heartbeat_ns.store(now_ns(), std::memory_order_release);
}

void count_collective() {
  if (WorkerPage* page = agent().page()) page->collectives.fetch_add(1, std::memory_order_relaxed);
}

void mark_ready() {
  WorkerPage* page = agent().page();
  if (page == nullptr || page->is_ready.exchange(1) != 0) return;
  page->phase.store(static_cast<uint32_t>(Phase::Ready), std::memory_order_relaxed);
  agent().send(channel::Ready{});
}

void tell_agent(std::string_view why) {
  if (has_agent()) agent().send(channel::Report{std::string(why)});
}

bool should_stop() {
  if (stop_requested()) return true;
  WorkerPage* page = agent().page();
  return page != nullptr && page->wants_stop.load(std::memory_order_acquire) != 0;
}

bool has_agent() {
  return agent().page() != nullptr;
}

}  // namespace cpprun::worker
