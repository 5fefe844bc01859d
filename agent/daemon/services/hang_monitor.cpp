#include "agent/daemon/services/hang_monitor.hpp"

#include <algorithm>
#include <fstream>
#include <utility>

#include "agent/daemon/loop_poster.hpp"
#include "agent/process/clock.hpp"
#include "agent/process/diagnostics/stack_collector.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr size_t kShownRanks = 16;
constexpr size_t kShownLines = 40;  // of the hung worker's stack

std::vector<WorkerObservation> sights_of(const std::vector<StackTarget>& witnesses) {
  std::vector<WorkerObservation> sights;
  for (const StackTarget& witness : witnesses) sights.push_back(witness.worker);
  return sights;
}

WorkerExit as_end(const agent::Hang& hang) {
  WorkerExit end;
  end.local_rank = hang.worker.local_rank;
  end.rank = hang.worker.rank;
  end.pid = hang.worker.pid;
  end.hang = hang.how;
  end.ended_at = boot_now();
  end.ended_at_wall = wall_now();
  return end;
}

std::string first_lines(const std::string& text, size_t count) {
  const std::vector<std::string> lines = text::split(text, '\n');
  std::string out;
  for (size_t i = 0; i < std::min(count, lines.size()); ++i) {
    if (!lines[i].empty()) out += "\n" + lines[i];
  }
  return out + (lines.size() > count ? "\n  ..." : "");
}

}  // namespace

struct HangMonitor::Found {
  uint64_t round = 0;
  agent::Hang hang;
  std::vector<StackTarget> witnesses;
  std::vector<std::string> texts;  // one per witness
  bool is_written = false;
};

HangMonitor::HangMonitor(boost::asio::io_context& loop, HangConfig config, Events events)
    : events_(std::move(events)),
      watch_(config),
      timer_(loop, [this] { look(); }),
      poster_(std::make_shared<LoopPoster>(loop)) {}

HangMonitor::~HangMonitor() {
  poster_->close();
}

void HangMonitor::begin_round(const std::string& report) {
  ++round_;
  report_ = report;
  watch_.begin_round(boot_now());
  timer_.set(watch_.next_look());
}

void HangMonitor::end_round() {
  ++round_;
  watch_.end_round();
  timer_.set(Instant::never());
}

void HangMonitor::on_stopped() {
  if (!watch_.next_look().is_never()) look();
}

void HangMonitor::look() {
  std::vector<StackTarget> witnesses = events_.look();
  const std::optional<agent::Hang> hang = watch_.look(boot_now(), sights_of(witnesses));
  timer_.set(watch_.next_look());
  if (!hang) return;
  if (hang->is_sure) return collect(*hang, std::move(witnesses));
  events_.on_warning("the workers may hang: " + summary_of(hang->worker) + "; " + hang->how +
                     ". Nothing is done about it; --hang-timeout=SECONDS would restart them");
}

void HangMonitor::collect(const agent::Hang& hang, std::vector<StackTarget> witnesses) {
  auto found = std::make_shared<Found>();  // shared with the thread, which may outlive us
  found->round = round_;
  found->hang = hang;
  found->witnesses = std::move(witnesses);
  const auto done = [this, found] {
    if (found->round == round_) on_evidence(*found);
  };
  const auto run = [found, done, report = report_, way = poster_] {
    found->texts = collect_stacks(found->witnesses);
    if (!report.empty()) {
      std::ofstream file(report);
      for (const std::string& text : found->texts) file << text << "\n";
      file.close();
      found->is_written = !file.fail();
    }
    LoopPoster::post(way, done);
  };
  if (Status started = start_detached_thread(run); !started) done();
}

// Whether the worker has made progress since `before`, so that it was only slow.
bool HangMonitor::goes_on(const WorkerObservation& before) {
  for (const StackTarget& witness : events_.look()) {
    const WorkerObservation& after = witness.worker;
    if (after.pid != before.pid) continue;
    const bool has_beaten =
        before.beat && after.beat &&
        (after.beat->step != before.beat->step || after.beat->age < before.beat->age);
    const bool is_let_go = before.state == WorkerObservation::State::Stopped &&
                           after.state != WorkerObservation::State::Stopped;
    return has_beaten || is_let_go;
  }
  return false;  // the worker has ended; its exit is reported separately
}

void HangMonitor::on_evidence(const Found& found) {
  if (goes_on(found.hang.worker)) {
    events_.on_warning("rank " + std::to_string(found.hang.worker.rank.value) +
                       " seemed to hang (" + found.hang.how + "), but goes on");
    watch_.begin_round(boot_now());
    timer_.set(watch_.next_look());
    return;
  }
  std::string shown = "the workers hang:";
  for (size_t i = 0; i < std::min(kShownRanks, found.witnesses.size()); ++i) {
    shown += "\n  " + summary_of(found.witnesses[i].worker);
  }
  for (size_t i = 0; i < found.texts.size(); ++i) {
    if (found.witnesses[i].worker.pid != found.hang.worker.pid) continue;
    shown += "\nthe one to look at:" + first_lines(found.texts[i], kShownLines);
  }
  if (found.is_written) shown += "\nthe stacks of all: " + report_;
  events_.on_warning(shown);
  events_.on_hang(as_end(found.hang));
}

}  // namespace cpprun
