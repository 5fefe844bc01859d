#include "agent/daemon/services/hang_monitor.hpp"

#include <algorithm>
#include <fstream>
#include <utility>

#include "agent/process/diagnostics/stack_collector.hpp"
#include "common/machine/clock.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr size_t kShownRanks = 16;
constexpr size_t kShownLines = 40;  // of the hung worker's stack

std::vector<WorkerObservation> observations_of(const std::vector<StackTarget>& targets) {
  std::vector<WorkerObservation> observations;
  for (const StackTarget& target : targets) observations.push_back(target.worker);
  return observations;
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
  if (!watch_.next_look().is_never()) sample();
}

void HangMonitor::sample() {
  std::vector<StackTarget> targets = events_.sample();
  const std::optional<agent::Hang> hang = watch_.look(boot_now(), observations_of(targets));
  timer_.set(watch_.next_look());
  if (!hang) return;
  if (hang->is_sure) return collect({*hang, std::move(targets)});
  events_.on_warning("the workers may hang: " + summary_of(hang->worker) + "; " + hang->how +
                     ". Nothing is done about it; --hang-timeout=SECONDS would restart them");
}

void HangMonitor::collect(Evidence evidence) {
  const auto done = [this, round = round_](const Evidence& collected) {
    if (round == round_) on_evidence(collected);
  };
  const auto run = [evidence, report = report_]() mutable {
    evidence.texts = collect_stacks(evidence.targets);
    if (report.empty()) return evidence;
    std::ofstream file(report);
    for (const std::string& text : evidence.texts) file << text << "\n";
    file.close();
    evidence.is_written = !file.fail();
    return evidence;
  };
  if (Status started = background_.run(run, done); !started) done(evidence);
}

// Whether the worker has made progress since `before`, so that it was only slow.
bool HangMonitor::has_progressed(const WorkerObservation& before) {
  for (const StackTarget& target : events_.sample()) {
    const WorkerObservation& after = target.worker;
    if (after.pid != before.pid) continue;
    const bool has_beaten =
        before.beat && after.beat &&
        (after.beat->step != before.beat->step || after.beat->age < before.beat->age);
    const bool is_continued = before.state == WorkerObservation::State::Stopped &&
                              after.state != WorkerObservation::State::Stopped;
    return has_beaten || is_continued;
  }
  return false;  // the worker has ended; its exit is reported separately
}

void HangMonitor::on_evidence(const Evidence& evidence) {
  if (has_progressed(evidence.hang.worker)) {
    events_.on_warning("rank " + std::to_string(evidence.hang.worker.rank.value) +
                       " seemed to hang (" + evidence.hang.how + "), but goes on");
    watch_.begin_round(boot_now());
    timer_.set(watch_.next_look());
    return;
  }
  std::string shown = "the workers hang:";
  for (size_t i = 0; i < std::min(kShownRanks, evidence.targets.size()); ++i) {
    shown += "\n  " + summary_of(evidence.targets[i].worker);
  }
  for (size_t i = 0; i < evidence.texts.size(); ++i) {
    if (evidence.targets[i].worker.pid != evidence.hang.worker.pid) continue;
    shown += "\nthe one to look at:" + first_lines(evidence.texts[i], kShownLines);
  }
  if (evidence.is_written) shown += "\nthe stacks of all: " + report_;
  events_.on_warning(shown);
  events_.on_hang(as_end(evidence.hang));
}

}  // namespace cpprun
