#include "cpprun/worker/agent_link.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "common/machine/clock.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/internal/own_agent.hpp"
#include "cpprun/worker/internal/stack_trace.hpp"

namespace cpprun::worker {
namespace {

constexpr int64_t kStepsOfMean = 8;  // for the mean duration of a step

std::atomic<bool> is_stop_requested{false};
std::atomic<bool> has_stepped{false};
// The section that the program is in, as in the page, which the agent empties between rounds.
std::atomic<uint32_t> open_section{0};
std::atomic<int64_t> open_section_since{0};
std::atomic<int64_t> computed_since{0};  // the heartbeat of the last step with a compute time
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

static void add_saved_to(WorkerPage& page, int64_t nanoseconds) {
  if (page.version >= 5) page.saved_ns.fetch_add(nanoseconds, std::memory_order_relaxed);
}

void add_saved(int64_t nanoseconds) {
  if (WorkerPage* page = own_agent().page()) add_saved_to(*page, nanoseconds);
}

// A template, so that the flag costs a heartbeat one store.
template <bool kProgressOnly>
static void write_heartbeat_to(WorkerPage& page, int64_t step, Phase phase) {
  const int64_t now = read_clock(CLOCK_MONOTONIC).count();  // the vDSO's: no system call
  const int64_t before = page.heartbeat_ns.load(std::memory_order_relaxed);
  const int64_t steps = step - page.step.load(std::memory_order_relaxed);
  const int64_t mean = page.step_ns.load(std::memory_order_relaxed);
  const auto former = static_cast<Phase>(page.phase.load(std::memory_order_relaxed));
  const bool was_training = former > Phase::Ready;
  if (former == Phase::Saving) add_saved_to(page, now - before);
  if (before > 0 && steps > 0 && was_training) {
    const int64_t takes = (now - before) / steps;
    page.step_ns.store(mean == 0 ? takes : mean + (takes - mean) / kStepsOfMean,
                       std::memory_order_relaxed);
  }
  page.step.store(step, std::memory_order_relaxed);
  page.phase.store(static_cast<uint32_t>(phase), std::memory_order_relaxed);
  page.progress_only.store(kProgressOnly ? 1 : 0, std::memory_order_relaxed);
  page.heartbeat_ns.store(now, std::memory_order_release);
}

void write_heartbeat(int64_t step, Phase phase) {
  WorkerPage* page = own_agent().page();
  if (page != nullptr) write_heartbeat_to<false>(*page, step, phase);
}

static void send_first_step(int64_t step) {
  if (!has_stepped.exchange(true) && own_agent().has_first_step()) {
    own_agent().send(channel::FirstStep{step});
  }
}

static void report_first_step(int64_t step) {
  write_heartbeat(step, Phase::Training);
  send_first_step(step);
}

// Of each step: what only the first one does is a function of its own, so this one needs no frame.
void heartbeat(int64_t step, Phase phase) {
  const bool is_first = phase == Phase::Training && !has_stepped.load(std::memory_order_relaxed);
  if (is_first) return report_first_step(step);
  write_heartbeat(step, phase);
}

void report_progress(int64_t step) {
  WorkerPage* page = own_agent().page();
  if (page == nullptr || page->version < 8) return;
  const bool has_heartbeat = page->heartbeat_ns.load(std::memory_order_relaxed) > 0;
  if (has_heartbeat && page->progress_only.load(std::memory_order_relaxed) == 0) return;
  write_heartbeat_to<true>(*page, step, Phase::Training);
  send_first_step(step);
}

void begin_round() {
  has_stepped.store(false);
  is_stop_requested.store(false);
  WorkerPage* page = own_agent().page();
  if (page == nullptr || page->version < 6) return;
  page->section_since_ns.store(open_section_since.load(), std::memory_order_release);
  page->section.store(open_section.load(), std::memory_order_release);
}

static void show_section(WorkerPage& page, uint32_t section, int64_t since) {
  open_section.store(section, std::memory_order_relaxed);
  open_section_since.store(since, std::memory_order_relaxed);
  page.section.store(0, std::memory_order_relaxed);
  page.section_since_ns.store(since, std::memory_order_release);
  page.section.store(section, std::memory_order_release);
}

void compute_done() {
  WorkerPage* page = own_agent().page();
  if (page == nullptr || page->version < 6) return;
  const int64_t began = page->heartbeat_ns.load(std::memory_order_relaxed);
  if (began <= 0 || computed_since.exchange(began, std::memory_order_relaxed) == began) return;
  const int64_t now = read_clock(CLOCK_MONOTONIC).count();
  page->compute_ns.fetch_add(now - began, std::memory_order_relaxed);
  page->compute_steps.fetch_add(1, std::memory_order_relaxed);
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

// The section of this name, which is new or known; empty: the table is full.
static std::optional<size_t> place_of(WorkerPage& page, std::string_view name) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  for (size_t i = 0; i < kWorkerSections; ++i) {
    char* known = page.sections[i].name;
    const size_t size = ::strnlen(known, sizeof page.sections[i].name);
    if (std::string_view(known, size) == name) return i;
    if (size != 0) continue;
    std::memcpy(known, name.data(), name.size());
    return i;
  }
  return std::nullopt;
}

Section::Section(std::string_view name, std::chrono::nanoseconds limit) {
  WorkerPage* page = own_agent().page();
  if (page == nullptr || page->version < 6 || name.empty()) return;
  place_ = place_of(*page, name.substr(0, sizeof WorkerPage::Section::name));
  if (!place_) return;
  begin_ns_ = read_clock(CLOCK_MONOTONIC).count();
  outer_ = page->section.load(std::memory_order_relaxed);
  outer_begin_ns_ = page->section_since_ns.load(std::memory_order_relaxed);
  page->sections[*place_].limit_ns.store(limit.count(), std::memory_order_relaxed);
  show_section(*page, static_cast<uint32_t>(*place_) + 1, begin_ns_);
}

Section::~Section() {
  if (!place_) return;
  WorkerPage* page = own_agent().page();
  WorkerPage::Section& section = page->sections[*place_];
  const int64_t took = read_clock(CLOCK_MONOTONIC).count() - begin_ns_;
  section.longest_ns.store(std::max(took, section.longest_ns.load(std::memory_order_relaxed)),
                           std::memory_order_relaxed);
  section.ended.fetch_add(1, std::memory_order_release);
  show_section(*page, outer_, outer_begin_ns_);
}

bool has_agent() { return own_agent().page() != nullptr; }

}  // namespace cpprun::worker
