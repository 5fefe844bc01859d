#include "cpprun/worker/faults.hpp"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "common/text.hpp"
#include "cpprun/worker/environment.hpp"

namespace cpprun::worker {
namespace {

using What = Fault::What;
using Optional = std::optional<int64_t>;

constexpr int kExitCodeMax = 255;
constexpr int64_t kSlowMsMax = 86'400'000;

struct Kind {
  const char* name;
  What what;
};
constexpr std::array kKinds = {Kind{"kill", What::Kill}, Kind{"stop", What::Stop},
                               Kind{"exit", What::Exit}, Kind{"throw", What::Throw},
                               Kind{"slow", What::Slow}};

struct PlaceName {
  const char* name;
  Optional Fault::*member;
};
constexpr std::array kPlaces = {PlaceName{"rank", &Fault::rank}, PlaceName{"step", &Fault::step},
                                PlaceName{"epoch", &Fault::training_epoch},
                                PlaceName{"attempt", &Fault::attempt},
                                PlaceName{"round", &Fault::round}};

Error wrong(std::string_view fault, const std::string& what) {
  return {ErrorKind::BadValue, "CPPRUN_FAULTS is '" + std::string(fault) + "': " + what +
                                   "; an example is kill:rank=1,epoch=2,attempt=0"};
}

Result<What> parse_kind(std::string_view text, const std::string& word) {
  for (const Kind& kind : kKinds) {
    if (word == kind.name) return kind.what;
  }
  return wrong(text, "'" + word + "' is none of kill, stop, exit, throw, slow");
}

Status put(Fault& fault, std::string_view text, const std::string& name, int64_t value) {
  for (const PlaceName& place : kPlaces) {
    if (name != place.name) continue;
    fault.*place.member = value;
    return {};
  }
  if (name == "code" && fault.what == What::Exit && value <= kExitCodeMax) {
    fault.code = static_cast<int>(value);
    return {};
  }
  if (name == "ms" && fault.what == What::Slow && value <= kSlowMsMax) {
    fault.slow_ms = value;
    return {};
  }
  return wrong(text, "'" + name +
                         "' is none of rank, step, epoch, attempt, round, nor code (0 to "
                         "255) of an exit, nor ms (to a day) of a slow");
}

Status parse_part(Fault& fault, std::string_view text, const std::string& part) {
  const size_t equals = part.find('=');
  const Optional value =
      equals == std::string::npos ? std::nullopt : text::parse_int(part.substr(equals + 1));
  if (!value || *value < 0) return wrong(text, "'" + part + "' is no name=number");
  return put(fault, text, part.substr(0, equals), *value);
}

bool fits_one(const Optional& wanted, const Optional& here) {
  return !wanted || wanted == here;
}

// Parsed once. No value: no faults are asked for.
std::optional<Fault> own_fault() {
  const Result<Environment>& own = environment();
  if (!own || own->faults.empty()) return std::nullopt;
  const Result<Fault> fault = parse_fault(own->faults);
  if (!fault) throw std::invalid_argument(fault.error().text);
  return *fault;
}

FaultPlace place_here(Optional training_epoch, Optional step) {
  const Environment& own = *environment();
  return {.rank = own.rank,
          .attempt = own.restart_count,
          .round = own.round,
          .step = step,
          .training_epoch = training_epoch};
}

std::string describe(const FaultPlace& place) {
  std::string text = "rank " + std::to_string(place.rank);
  if (place.training_epoch) text += ", training epoch " + std::to_string(*place.training_epoch);
  if (place.step) text += ", step " + std::to_string(*place.step);
  return text;
}

void carry_out(const Fault& fault, const FaultPlace& place) {
  const std::string text = environment()->faults + " at " + describe(place);
  ::fprintf(stderr, "cpprun: fault %s\n", text.c_str());
  ::fflush(nullptr);
  switch (fault.what) {
    case What::Kill:
      ::kill(::getpid(), SIGKILL);
      break;
    case What::Stop:
      ::kill(::getpid(), SIGSTOP);
      break;
    case What::Exit:
      ::_exit(fault.code);
    case What::Throw:
      throw FaultError("fault " + text);
    case What::Slow:
      std::this_thread::sleep_for(std::chrono::milliseconds(fault.slow_ms));
  }
}

}  // namespace

Result<Fault> parse_fault(std::string_view text) {
  const size_t colon = text.find(':');
  const Result<What> what = parse_kind(text, std::string(text.substr(0, colon)));
  if (!what) return what.error();
  Fault fault;
  fault.what = *what;
  if (colon == std::string_view::npos) return fault;
  for (const std::string& part : text::split(text.substr(colon + 1), ',')) {
    const Status status = parse_part(fault, text, part);
    if (!status) return status.error();
  }
  return fault;
}

bool fits(const Fault& fault, const FaultPlace& place) {
  return fits_one(fault.rank, place.rank) && fits_one(fault.attempt, place.attempt) &&
         fits_one(fault.round, place.round) && fits_one(fault.step, place.step) &&
         fits_one(fault.training_epoch, place.training_epoch);
}

void fault_point(Optional training_epoch, Optional step) {
  static const std::optional<Fault> fault = own_fault();
  static std::atomic<bool> has_happened{false};
  if (!fault) return;
  const FaultPlace place = place_here(training_epoch, step);
  if (!fits(*fault, place)) return;
  if (fault->what != What::Slow && has_happened.exchange(true)) return;
  carry_out(*fault, place);
}

}  // namespace cpprun::worker
