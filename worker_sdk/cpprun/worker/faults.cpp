#include "cpprun/worker/faults.hpp"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/text.hpp"
#include "cpprun/worker/agent_link.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/internal/own_agent.hpp"

namespace cpprun::worker {
namespace {

using FaultKind = Fault::FaultKind;
using Optional = std::optional<int64_t>;

constexpr int kExitCodeMax = 255;
constexpr int64_t kSlowMsMax = 86'400'000;

struct Kind {
  const char* name;
  FaultKind what;
};
constexpr std::array kKinds = {Kind{"kill", FaultKind::Kill},
                               Kind{"stop", FaultKind::Stop},
                               Kind{"exit", FaultKind::Exit},
                               Kind{"throw", FaultKind::Throw},
                               Kind{"slow", FaultKind::Slow},
                               Kind{"ask", FaultKind::Request},
                               Kind{"report", FaultKind::ReportProgress}};

struct PlaceName {
  const char* name;
  Optional Fault::*member;
};
constexpr std::array kPlaces = {
    PlaceName{"rank", &Fault::rank},   PlaceName{"step", &Fault::step},
    PlaceName{"epoch", &Fault::epoch}, PlaceName{"attempt", &Fault::attempt},
    PlaceName{"round", &Fault::round}, PlaceName{"node", &Fault::node},
    PlaceName{"fault", &Fault::number}};
constexpr std::array kPhases = {"starting", "training", "saving"};

Error malformed(std::string_view value, const std::string& what) {
  return {ErrorKind::BadValue, "CPPRUN_FAULTS is '" + std::string(value) + "': " + what +
                                   "; an example is kill:rank=1,epoch=2,attempt=0"};
}

Result<FaultKind> parse_kind(std::string_view whole, const std::string& word) {
  for (const Kind& kind : kKinds) {
    if (word == kind.name) return kind.what;
  }
  return malformed(whole, "'" + word + "' is none of kill, stop, exit, throw, slow");
}

Status set_condition(Fault& fault, std::string_view whole, const std::string& name, int64_t value) {
  for (const PlaceName& place : kPlaces) {
    if (name != place.name) continue;
    fault.*place.member = value;
    return {};
  }
  if (name == "code" && fault.what == FaultKind::Exit && value <= kExitCodeMax) {
    fault.code = static_cast<int>(value);
    return {};
  }
  if (name == "ms" && fault.what == FaultKind::Slow && value <= kSlowMsMax) {
    fault.slow_ms = value;
    return {};
  }
  return malformed(whole,
                   "'" + name +
                       "' is none of rank, node, step, epoch, attempt, round, phase, nor code "
                       "(0 to 255) of an exit, nor ms (to a day) of a slow");
}

Status set_phase(Fault& fault, std::string_view whole, const std::string& word) {
  for (size_t i = 0; i < kPhases.size(); ++i) {
    if (word != kPhases[i]) continue;
    fault.phase = static_cast<FaultPhase>(i);
    return {};
  }
  return malformed(whole, "the phase '" + word + "' is none of starting, training, saving");
}

Status parse_part(Fault& fault, std::string_view whole, const std::string& part) {
  const size_t equals = part.find('=');
  if (part.substr(0, equals) == "phase" && equals != std::string::npos) {
    return set_phase(fault, whole, part.substr(equals + 1));
  }
  const Optional value =
      equals == std::string::npos ? std::nullopt : text::parse_int(part.substr(equals + 1));
  if (!value || *value < 0) return malformed(whole, "'" + part + "' is no name=number");
  return set_condition(fault, whole, part.substr(0, equals), *value);
}

// `whole`: the value of CPPRUN_FAULTS that contains `text`, for error messages.
Result<Fault> parse_one(std::string_view text, std::string_view whole) {
  const size_t colon = text.find(':');
  const Result<FaultKind> what = parse_kind(whole, std::string(text.substr(0, colon)));
  if (!what) return what.error();
  Fault fault;
  fault.what = *what;
  if (colon == std::string_view::npos) return fault;
  for (const std::string& part : text::split(text.substr(colon + 1), ',')) {
    const Status status = parse_part(fault, whole, part);
    if (!status) return status.error();
  }
  return fault;
}

bool matches(const Optional& wanted, const Optional& here) { return !wanted || wanted == here; }

struct PlannedFault {
  explicit PlannedFault(const NamedFault& named) : fault(named.fault), text(named.text) {}
  const Fault fault;
  const std::string text;
  std::atomic<bool> has_happened{false};
};
using Plan = std::vector<std::unique_ptr<PlannedFault>>;

// Parsed once. Empty: CPPRUN_FAULTS is not set.
Plan own_plan() {
  Plan plan;
  const Result<std::vector<NamedFault>> faults = parse_faults(environment_or_default().faults);
  if (!faults) throw std::invalid_argument(faults.error().text);
  for (const NamedFault& one : *faults) plan.push_back(std::make_unique<PlannedFault>(one));
  return plan;
}

bool wants_progress(const Plan& plan) {
  return std::any_of(plan.begin(), plan.end(), [](const auto& planned) {
    return planned->fault.what == FaultKind::ReportProgress;
  });
}

FaultPlace place_here(Optional epoch, Optional step, FaultPhase phase) {
  const Environment& own = environment_or_default();
  return {.rank = own.rank,
          .attempt = own.restart_count,
          .round = own.round,
          .step = step,
          .epoch = epoch,
          .node = own.group_rank,
          .phase = phase};
}

std::string describe(const FaultPlace& place) {
  std::string text = "rank " + std::to_string(place.rank);
  if (place.epoch) text += ", training epoch " + std::to_string(*place.epoch);
  if (place.step) text += ", step " + std::to_string(*place.step);
  return text;
}

void carry_out(const PlannedFault& planned, const FaultPlace& place) {
  const Fault& fault = planned.fault;
  if (fault.what == FaultKind::Request) return;  // the agent has carried it out and logged it
  const std::string text = planned.text + " at " + describe(place);
  ::fprintf(stderr, "cpprun: fault %s\n", text.c_str());
  ::fflush(nullptr);
  switch (fault.what) {
    case FaultKind::Kill: ::kill(::getpid(), SIGKILL); break;
    case FaultKind::Stop: ::kill(::getpid(), SIGSTOP); break;
    case FaultKind::Exit: ::_exit(fault.code);
    case FaultKind::Throw: throw FaultError("fault " + text);
    case FaultKind::Slow:
      std::this_thread::sleep_for(std::chrono::milliseconds(fault.slow_ms));
      break;
    case FaultKind::Request:
    case FaultKind::ReportProgress: break;
  }
}

// Asks the agent for a fault permit. Without an agent there is none.
bool request_fault_permit(const Fault& fault, const FaultPlace& place) {
  const AgentSocket& agent = own_agent();
  if (agent.page() == nullptr) return false;
  const auto answer =
      agent.request(channel::FaultPermitRequest{.fault = static_cast<uint32_t>(*fault.number),
                                                .step = place.step.value_or(-1),
                                                .epoch = place.epoch.value_or(-1)});
  const auto* permission = answer ? std::get_if<channel::Permission>(&answer->message) : nullptr;
  return permission != nullptr && permission->is_permitted;
}

// Reports the first step of this process, and every step as a heartbeat; the cost of a fault is
// computed from both.
void report_progress(const FaultPlace& place) {
  if (!place.step && !place.epoch) return;
  if (place.step) write_heartbeat(*place.step, Phase::Training);
  // 0: in no round yet.
  static std::atomic<int64_t> reported_round{0};
  if (reported_round.exchange(place.round + 1) == place.round + 1 || own_agent().page() == nullptr)
    return;
  own_agent().send(channel::Began{place.step.value_or(-1), place.epoch.value_or(-1)});
}

void pass(Optional epoch, Optional step, FaultPhase phase) {
  static const Plan plan = own_plan();
  static const bool reports_progress = wants_progress(plan);
  if (plan.empty()) return;
  const FaultPlace place = place_here(epoch, step, phase);
  if (reports_progress && phase == FaultPhase::Training) report_progress(place);
  for (const std::unique_ptr<PlannedFault>& planned : plan) {
    const Fault& fault = planned->fault;
    if (fault.what == FaultKind::ReportProgress || !fits(fault, place)) continue;
    if (fault.number) {
      if (request_fault_permit(fault, place)) carry_out(*planned, place);
    } else if (fault.what == FaultKind::Slow || !planned->has_happened.exchange(true)) {
      carry_out(*planned, place);
    }
  }
}

}  // namespace

Result<std::vector<NamedFault>> parse_faults(std::string_view value) {
  std::vector<NamedFault> all;
  for (std::string& one : text::split(value, ';')) {
    if (one.empty()) continue;
    const Result<Fault> fault = parse_one(one, value);
    if (!fault) return fault.error();
    all.push_back({*fault, std::move(one)});
  }
  return all;
}

bool fits(const Fault& fault, const FaultPlace& place) {
  if (fault.phase && *fault.phase != place.phase) return false;
  // Without a phase a fault does not match saving, and a fault of a plan does not match the start.
  if (!fault.phase && place.phase == FaultPhase::Saving) return false;
  if (!fault.phase && place.phase == FaultPhase::Starting && fault.number) return false;
  return matches(fault.node, place.node) && matches(fault.rank, place.rank) &&
         matches(fault.attempt, place.attempt) && matches(fault.round, place.round) &&
         matches(fault.step, place.step) && matches(fault.epoch, place.epoch);
}

void fault_point(Optional epoch, Optional step) { pass(epoch, step, FaultPhase::Training); }

void fault_point_at_start() { pass({}, {}, FaultPhase::Starting); }

void fault_point_at_save(int64_t step) { pass({}, step, FaultPhase::Saving); }

}  // namespace cpprun::worker
