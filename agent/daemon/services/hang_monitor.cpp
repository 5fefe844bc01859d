#include "agent/daemon/services/hang_monitor.hpp"

#include <algorithm>
#include <fstream>
#include <utility>

#include "agent/process/diagnostics/process_sampler.hpp"
#include "agent/process/diagnostics/stack_collector.hpp"
#include "common/limits/agent.hpp"
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
  // Before this phase no step is finished.
  const bool has_step = hang.worker.beat && hang.worker.beat->phase >= kTrainingPhase;
  if (has_step) end.step = hang.worker.beat->step;
  end.ended_at = boot_now();
  end.ended_at_wall = wall_now();
  return end;
}

// Beside the report: hang_round_3.txt, hang_round_3_traces.
std::string trace_folder_of(const std::string& report) {
  return report.substr(0, report.rfind('.')) + "_traces";
}

agent::TraceFinding compare(const std::vector<StackTarget>& targets,
                            const std::vector<FlightDump>& dumps) {
  std::vector<agent::RankTrace> ranks;
  for (size_t i = 0; i < dumps.size(); ++i) {
    if (!dumps[i].text.empty())
      ranks.push_back({targets[i].worker.rank, agent::parse_trace(dumps[i].text)});
  }
  return agent::compare_traces(ranks);
}

std::optional<size_t> place_of(Rank rank, const std::vector<StackTarget>& targets) {
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].worker.rank == rank) return i;
  }
  return std::nullopt;
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
  is_sampling_ = wants_another_ = false;
  report_ = report;
  watch_.begin_round(boot_now());
  timer_.set(watch_.next_look());
}

void HangMonitor::end_round() {
  ++round_;
  if (!watch_.next_look().is_never()) watch_.learn(observations_of(events_.live()));
  watch_.end_round();
  timer_.set(Instant::never());
}

void HangMonitor::on_stopped() {
  if (!watch_.next_look().is_never()) sample();
}

void HangMonitor::sample() {
  timer_.set(Instant::never());
  if (std::exchange(is_sampling_, true)) {
    wants_another_ = true;  // what happened now is not in the sample under way
    return;
  }
  wants_another_ = false;
  const auto read = [targets = events_.live()]() mutable {
    for (StackTarget& target : targets) sample_process(target.worker);
    return targets;
  };
  const auto done = [this, round = round_](const std::vector<StackTarget>& targets) {
    if (round == round_) on_sampled(targets);
  };
  if (background_.run(read, done)) return;
  is_sampling_ = false;
  timer_.set(boot_now() + limits::kHangPollInterval);  // the system has no thread at the moment
}

void HangMonitor::on_sampled(const std::vector<StackTarget>& targets) {
  is_sampling_ = false;
  const std::optional<agent::Hang> hang = watch_.look(boot_now(), observations_of(targets));
  timer_.set(watch_.next_look());
  if (!hang && wants_another_) return sample();
  if (!hang) return;
  if (hang->is_sure) return collect({*hang, targets, boot_now()});
  events_.on_warning("the workers may hang: " + summary_of(hang->worker) + "; " + hang->how +
                     ". Nothing is done about it; --hang-timeout=SECONDS would restart them");
}

void HangMonitor::collect(Evidence evidence) {
  const auto run = [evidence, report = report_]() mutable {
    const std::vector<FlightDump> dumps = collect_traces(evidence.targets);
    add_stacks(evidence, dumps);
    WorkerObservation after = evidence.hang.worker;
    sample_process(after);
    evidence.state_after = after.state;
    if (!report.empty()) write_report(evidence, dumps, report);
    return evidence;
  };
  const auto done = [this, round = round_](const Evidence& collected) {
    if (round == round_) on_evidence(collected);
  };
  if (Status started = background_.run(run, done); !started) {
    evidence.state_after = evidence.hang.worker.state;
    done(evidence);
  }
}

void HangMonitor::add_stacks(Evidence& evidence, const std::vector<FlightDump>& dumps) {
  evidence.traces = compare(evidence.targets, dumps);
  evidence.texts = collect_stacks(evidence.targets);
  for (size_t i = 0; i < evidence.texts.size(); ++i) {
    const Rank rank = evidence.targets[i].worker.rank;
    evidence.stacks.push_back(
        {rank, agent::main_stack(evidence.texts[i]), agent::waits_in(evidence.texts[i])});
  }
  if (!evidence.hang.is_guess) return;
  if (evidence.traces.odd) {
    evidence.comparison = {place_of(*evidence.traces.odd, evidence.targets), ""};
  } else {
    evidence.comparison = agent::compare_stacks(evidence.stacks);
  }
  const std::optional<size_t> odd = evidence.comparison.odd;
  if (odd) evidence.hang.worker = evidence.targets[*odd].worker;
}

void HangMonitor::write_report(Evidence& evidence, const std::vector<FlightDump>& dumps,
                               const std::string& report) {
  evidence.trace_folder = write_traces(trace_folder_of(report), evidence.targets, dumps);
  std::ofstream file(report);
  for (const std::string& text : evidence.texts) file << text << "\n";
  if (!evidence.traces.text.empty()) file << "flight recorder: " << evidence.traces.text << "\n";
  if (!evidence.trace_folder.empty()) file << "\n" << run_torchfrtrace(evidence.trace_folder);
  file.close();
  evidence.is_written = !file.fail();
}

// Whether the worker has made progress meanwhile, so that it was only slow.
bool HangMonitor::has_progressed(const Evidence& evidence) {
  const WorkerObservation& before = evidence.hang.worker;
  const bool was_stopped = before.state == WorkerObservation::State::Stopped;
  const bool is_continued =
      was_stopped && evidence.state_after != WorkerObservation::State::Stopped;
  for (const StackTarget& target : events_.live()) {
    const WorkerObservation& after = target.worker;
    if (after.pid != before.pid) continue;
    const bool has_beaten =
        before.beat && after.beat &&
        (after.beat->step != before.beat->step || after.beat->age < before.beat->age);
    const bool has_moved =
        before.section && (!after.section || after.section->name != before.section->name ||
                           after.section_age < before.section_age);
    return has_beaten || has_moved || is_continued;
  }
  return false;  // the worker has ended; its exit is reported separately
}

void HangMonitor::on_evidence(Evidence evidence) {
  agent::Hang& hang = evidence.hang;
  if (!evidence.comparison.why.empty()) {
    hang.how = watch_.silence_text(evidence.found_at, hang.worker) + "; " + evidence.comparison.why;
  }
  if (!evidence.traces.text.empty()) {
    hang.how += "; torch's flight recorder: " + evidence.traces.text;
  }
  if (has_progressed(evidence)) {
    events_.on_warning("rank " + std::to_string(hang.worker.rank.value) + " seemed to hang (" +
                       hang.how + "), but continues");
    watch_.begin_round(boot_now());
    timer_.set(watch_.next_look());
    return;
  }
  std::string shown = "the workers hang:";
  for (size_t i = 0; i < std::min(kShownRanks, evidence.targets.size()); ++i) {
    shown += "\n  " + summary_of(evidence.targets[i].worker);
  }
  for (size_t i = 0; i < evidence.texts.size(); ++i) {
    if (evidence.targets[i].worker.pid != hang.worker.pid) continue;
    shown += "\nthe one to look at:" + first_lines(evidence.texts[i], kShownLines) +
             grouped_stacks(evidence.stacks, i);
  }
  if (evidence.is_written) shown += "\nthe stacks of all: " + report_;
  if (!evidence.trace_folder.empty()) {
    shown += "\nflight-recorder dumps, for torchfrtrace: " + evidence.trace_folder;
  }
  events_.on_warning(shown);
  events_.on_hang(as_end(hang), evidence.found_at - hang.silent);
}

}  // namespace cpprun
