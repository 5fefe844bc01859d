#include "agent/core/hangs/hang_watch.hpp"

#include <algorithm>
#include <utility>

#include "common/limits/agent.hpp"
#include "common/text.hpp"

namespace cpprun::agent {
namespace {

using State = WorkerObservation::State;

// By worker::Phase.
constexpr std::array<const char*, 6> kPhaseNames{"starting",   "ready",  "training",
                                                 "evaluating", "saving", "ending"};

constexpr int kGapFactor = 20;   // limit of a phase, in multiples of its longest gap so far
constexpr int kIdlePercent = 2;  // of a core: library threads use this much while the worker waits
constexpr int kObservationsPerLimit = 4;  // bounds the detection's delay to a quarter of the limit

bool takes_long(const std::optional<Heartbeat>& beat) {
  return !beat || beat->phase == kStartingPhase || beat->phase == kSavingPhase;
}

// At least one. The numbers come from the worker and may be anything.
int64_t steps_between(const Heartbeat& before, const Heartbeat& after) {
  int64_t steps = 0;
  const bool overflows = __builtin_sub_overflow(after.step, before.step, &steps);
  return overflows ? 1 : std::max<int64_t>(1, steps);
}

// The only worker with the least `value`; null if several have it.
template <class Value>
const WorkerObservation* only_least(const std::vector<WorkerObservation>& workers, Value value) {
  const auto least = std::ranges::min_element(workers, {}, value);
  return std::ranges::count(workers, value(*least), value) == 1 ? &*least : nullptr;
}

bool all_beat(const std::vector<WorkerObservation>& workers) {
  return std::ranges::all_of(workers, [](const auto& w) { return w.beat.has_value(); });
}

}  // namespace

std::string phase_name(uint32_t phase) {
  return phase < kPhaseNames.size() ? kPhaseNames[phase] : "phase " + std::to_string(phase);
}

// ---------------------------------------------------------------- limits

Duration HangWatch::interval() const {
  if (config_.mode == HangConfig::Mode::Auto) return limits::kHangPollInterval;
  return std::clamp<Duration>(config_.limit / kObservationsPerLimit, limits::kHangPollIntervalMin,
                              limits::kHangPollInterval);
}

Duration HangWatch::stopped_limit() const {
  return config_.mode == HangConfig::Mode::Auto ? limits::kHangStoppedTimeout : config_.limit;
}

Duration HangWatch::limit(const Track& track) const {
  const bool is_fixed = config_.mode == HangConfig::Mode::Fixed;
  if (track.section) {
    return sections_.limit(*track.section, is_fixed ? config_.limit : limits::kHangSilence,
                           is_fixed ? config_.limit : limits::kHangSilenceLong);
  }
  if (is_fixed) return config_.limit;
  const uint32_t phase = track.beat ? track.beat->phase : kStartingPhase;
  const bool is_regular = track.beat && (phase == kTrainingPhase || phase == kEvaluatingPhase);
  const Duration least = is_regular ? limits::kHangSilence : limits::kHangSilenceLong;
  const Duration longest = phase < kPhases ? longest_gap_[phase] : Duration{};
  return std::max(least, longest * kGapFactor);
}

// How long the worker has shown no progress, by the measure of its phase.
Duration HangWatch::silence(const Track& track, Instant now) const {
  const Duration quiet = now - track.moved_at;
  if (track.section) {
    const Duration inside = now - section_begun(track);
    return track.section->limit > Duration{} ? inside : std::min(inside, quiet);
  }
  if (takes_long(track.beat)) return quiet;
  const Duration since_beat = now - std::max(track.beat_at, awake_since_);
  return config_.mode == HangConfig::Mode::Auto ? std::min(since_beat, quiet) : since_beat;
}

// In a phase that may take long, and busy: the other workers may wait for it.
bool HangWatch::is_in_long_work(const Track& track, Instant now) const {
  return (takes_long(track.beat) || track.section) && now - track.moved_at < limit(track);
}

void HangWatch::learn(const HangTimes& times) {
  for (uint32_t phase = 0; phase < kPhases; ++phase) {
    const auto known = times.phases.find(phase_name(phase));
    if (known != times.phases.end()) {
      longest_gap_[phase] = std::max(longest_gap_[phase], known->second);
    }
  }
  for (const auto& [section, longest] : times.sections) sections_.learn(section, longest);
}

HangTimes HangWatch::learned() const {
  HangTimes times{{}, sections_.longest()};
  for (uint32_t phase = 0; phase < kPhases; ++phase) {
    if (longest_gap_[phase] > Duration{}) times.phases[phase_name(phase)] = longest_gap_[phase];
  }
  return times;
}

// ---------------------------------------------------------------- observations

void HangWatch::begin_round(Instant now) {
  tracks_.clear();
  is_reported_ = false;
  observed_at_ = awake_since_ = now;
  next_observation_ = config_.mode == HangConfig::Mode::Off ? Instant::never() : now + interval();
}

void HangWatch::end_round() {
  tracks_.clear();
  next_observation_ = Instant::never();
}

std::optional<Hang> HangWatch::look(Instant now, const std::vector<WorkerObservation>& workers) {
  if (next_observation_.is_never()) return std::nullopt;
  const bool has_slept = now - observed_at_ > interval() * 3 + limits::kHangPollIntervalMin;
  std::map<int64_t, Track> kept;
  for (const WorkerObservation& worker : workers) {
    const auto known = tracks_.find(worker.local_rank.value);
    const bool is_known = known != tracks_.end() && known->second.pid == worker.pid;
    Track& track = kept[worker.local_rank.value];
    if (is_known) track = known->second;
    if (!is_known) track.moved_at = now;
    update(now, worker, track);
  }
  tracks_ = std::move(kept);
  const bool is_debugged =
      std::ranges::count(workers, State::Traced, &WorkerObservation::state) > 0;
  if (has_slept || is_debugged) restart_silence(now);
  observed_at_ = now;
  next_observation_ = now + interval();
  for (const auto& [rank, track] : tracks_) {
    if (!track.stopped_since.is_never()) {
      next_observation_ = std::min(next_observation_, track.stopped_since + stopped_limit());
    }
    if (track.section && track.section->limit > Duration{}) {
      next_observation_ = std::min(next_observation_, section_begun(track) + track.section->limit);
    }
  }
  std::optional<Hang> hang = detect(now, workers);
  next_observation_ =
      hang && hang->is_sure ? Instant::never() : std::max(next_observation_, now + Duration(1));
  return hang;
}

// The agent was frozen, or a debugger holds the workers: that time does not count as silence.
void HangWatch::restart_silence(Instant now) {
  awake_since_ = now;
  for (auto& [rank, track] : tracks_) {
    track.moved_at = now;
    if (!track.stopped_since.is_never()) track.stopped_since = now;
  }
}

void HangWatch::update(Instant now, const WorkerObservation& worker, Track& track) {
  const auto used = worker.cpu > track.cpu ? worker.cpu - track.cpu : track.cpu - worker.cpu;
  const bool has_worked = used * 100 > (now - observed_at_) * kIdlePercent;
  if (has_worked || worker.bytes != track.bytes || track.pid != worker.pid) track.moved_at = now;
  track.pid = worker.pid;
  track.cpu = worker.cpu;
  track.bytes = worker.bytes;
  const bool is_stopped = worker.state == State::Stopped;
  if (!is_stopped) track.stopped_since = Instant::never();
  if (is_stopped && track.stopped_since.is_never()) track.stopped_since = now;
  track.section = worker.section;
  track.section_since = now - worker.section_age;
  sections_.learn(worker.sections);
  if (!worker.beat) return;
  const Instant beat_at = now - worker.beat->age;
  const bool is_next = track.beat && track.beat->phase == worker.beat->phase;
  if (is_next && worker.beat->phase < kPhases) {
    // Several steps between two observations share the time equally.
    const int64_t steps = steps_between(*track.beat, *worker.beat);
    Duration& longest = longest_gap_[worker.beat->phase];
    if (beat_at > track.beat_at) longest = std::max(longest, (beat_at - track.beat_at) / steps);
  }
  track.beat = worker.beat;
  track.beat_at = beat_at;
}

// ---------------------------------------------------------------- detection

std::optional<Hang> HangWatch::detect(Instant now, const std::vector<WorkerObservation>& workers) {
  if (workers.empty()) return std::nullopt;
  if (std::optional<Hang> stopped = find_stopped(now, workers)) return stopped;
  const auto is_over_its_limit = [&](const auto& item) { return is_over_limit(item.second, now); };
  const bool is_over = std::ranges::any_of(tracks_, is_over_its_limit);
  if (!is_over && !is_breach(now)) return std::nullopt;
  Hang hang = describe(now, workers);
  hang.is_sure = is_over || config_.mode == HangConfig::Mode::Fixed || all_beat(workers);
  if (!hang.is_sure && std::exchange(is_reported_, true)) return std::nullopt;
  return hang;
}

std::optional<Hang> HangWatch::find_stopped(Instant now,
                                            const std::vector<WorkerObservation>& workers) const {
  for (const WorkerObservation& worker : workers) {
    const Instant since = tracks_.at(worker.local_rank.value).stopped_since;
    if (since.is_never() || now - since < stopped_limit()) continue;
    return Hang{worker, "stopped by a signal, such as SIGSTOP, for " + text::seconds(now - since),
                now - since, false, true};
  }
  return std::nullopt;
}

bool HangWatch::is_breach(Instant now) const {
  const auto is_silent = [&](const auto& item) {
    return silence(item.second, now) >= limit(item.second);
  };
  if (config_.mode == HangConfig::Mode::Auto) {
    return std::ranges::all_of(tracks_, is_silent);
  }
  const auto is_at_work = [&](const auto& item) { return is_in_long_work(item.second, now); };
  return std::ranges::any_of(tracks_, is_silent) && std::ranges::none_of(tracks_, is_at_work);
}

std::string HangWatch::silence_text(Instant now, const WorkerObservation& worker) const {
  const Track& track = tracks_.at(worker.local_rank.value);
  if (track.section) {
    const Duration inside = now - std::max(track.section_since, awake_since_);
    return "in the section '" + track.section->name + "' for " + text::seconds(inside) + "; " +
           sections_.limit_text(*track.section, limit(track));
  }
  if (!worker.beat) {
    return "no CPU time, input or output for " + text::seconds(now - track.moved_at);
  }
  const Duration since = now - std::max(track.beat_at, awake_since_);
  return "no heartbeat for " + text::seconds(since) + " at step " +
         std::to_string(worker.beat->step) + ", " + phase_name(worker.beat->phase);
}

Hang HangWatch::describe(Instant now, const std::vector<WorkerObservation>& workers) const {
  std::string why;
  const WorkerObservation& worker = find_outlier(now, workers, why);
  const bool is_guess = why.empty();
  if (is_guess && !worker.beat) why = "; it sends no heartbeats, so no more is known";
  return Hang{worker, silence_text(now, worker) + why, silent(now, worker), is_guess, false};
}

// The worker that the others wait for, as far as the observations show.
const WorkerObservation& HangWatch::find_outlier(Instant now,
                                                 const std::vector<WorkerObservation>& workers,
                                                 std::string& why) const {
  for (const auto& [state, words] : {std::pair{State::Stopped, "; it is stopped by a signal"},
                                     std::pair{State::Blocked, "; it waits inside the kernel"}}) {
    for (const WorkerObservation& worker : workers) {
      if (worker.state != state) continue;
      why = words;
      return worker;
    }
  }
  for (const WorkerObservation& worker : workers) {
    if (!is_over_limit(tracks_.at(worker.local_rank.value), now)) continue;
    why = "; the others are within theirs";
    return worker;
  }
  const auto silence_of = [&](const WorkerObservation& w) {
    return silence(tracks_.at(w.local_rank.value), now);
  };
  const WorkerObservation& most_silent = *std::ranges::max_element(workers, {}, silence_of);
  if (workers.size() == 1) return most_silent;
  if (all_beat(workers)) {
    const auto collectives = [](const WorkerObservation& w) { return w.beat->collectives; };
    if (const WorkerObservation* odd = only_least(workers, collectives)) {
      why = "; it has come to fewer collectives than the others (" +
            std::to_string(odd->beat->collectives) + ")";
      return *odd;
    }
    const auto step = [](const WorkerObservation& w) { return w.beat->step; };
    if (const WorkerObservation* odd = only_least(workers, step)) {
      why = "; the others have come further";
      return *odd;
    }
  }
  // A worker that is busy while all others are idle: the others wait for it.
  const auto idle = [&](const WorkerObservation& w) {
    return tracks_.at(w.local_rank.value).moved_at == now ? 0 : 1;
  };
  const WorkerObservation* busy = only_least(workers, idle);
  if (busy == nullptr || idle(*busy) != 0) return most_silent;
  why = "; it is busy, the others wait";
  return *busy;
}

}  // namespace cpprun::agent
