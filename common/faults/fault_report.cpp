#include "common/faults/fault_report.hpp"

#include <algorithm>

#include "common/limits/faults.hpp"
#include "common/text.hpp"

namespace cpprun::faults {
namespace {

std::optional<int64_t> difference(const std::optional<int64_t>& before,
                                  const std::optional<int64_t>& after) {
  if (!before || !after) return std::nullopt;
  return std::max<int64_t>(0, *before - *after);
}

std::string outcome_text(const InjectedFault& injected, const Fault& fault) {
  std::string text = injected.where;
  if (injected.recovery) {
    text += "; all workers running again after " + text::seconds(*injected.recovery, 3);
  } else {
    text += fault.is_survived() ? "; the round continued" : "; no round followed";
  }
  if (injected.lost_steps) text += "; lost steps: " + std::to_string(*injected.lost_steps);
  if (injected.lost_epochs) {
    text += "; lost training epochs: " + std::to_string(*injected.lost_epochs);
  }
  return text;
}

ExpectationResult check_recovery(const std::vector<InjectedFault>& injections, const Plan& plan) {
  const Duration most = *plan.expect->recovery_max;
  ExpectationResult result{"recovery", true, "nothing had to recover"};
  Duration longest{};
  for (const InjectedFault& injected : injections) {
    const Fault& fault = plan.faults[injected.fault];
    if (!injected.recovery && fault.is_survived()) continue;
    if (!injected.recovery) {
      return {"recovery", false,
              "no round followed " + describe(fault) + " (" + injected.where + ")"};
    }
    longest = std::max(longest, *injected.recovery);
    result.text =
        "at most " + text::seconds(longest, 3) + ", expected at most " + text::seconds(most, 3);
  }
  result.is_held = longest <= most;
  result.seconds = to_seconds(longest);
  return result;
}

// Lost steps or lost epochs, as `lost` selects.
ExpectationResult check_loss(const std::vector<InjectedFault>& injections, const Plan& plan,
                             const char* noun, int64_t most,
                             std::optional<int64_t> InjectedFault::*lost) {
  int64_t worst = 0;
  for (const InjectedFault& injected : injections) {
    const bool is_known = (injected.*lost).has_value();
    if (is_known) worst = std::max(worst, *(injected.*lost));
    if (is_known || plan.faults[injected.fault].is_survived()) continue;
    return {noun, false,
            "not known after " + injected.where +
                ": the program must report where it is (fault_point of the worker library)"};
  }
  return {noun, worst <= most,
          "at most " + std::to_string(worst) + ", expected at most " + std::to_string(most)};
}

}  // namespace

void FaultReport::on_injected(Instant now, size_t fault, int64_t round, std::string where,
                              Progress progress) {
  if (fault >= plan_.faults.size() || injections_.size() >= limits::kFaultsInReport) return;
  injections_.push_back(InjectedFault{fault, std::move(where), now, round, progress});
}

void FaultReport::on_started(Instant now, int64_t round, int64_t restarts) {
  round_ = round;
  restarts_ = restarts;
  for (InjectedFault& injected : injections_) {
    if (!injected.recovery && injected.round < round) injected.recovery = now - injected.at;
  }
}

void FaultReport::on_began(Progress progress) {
  for (InjectedFault& injected : injections_) {
    if (injected.round >= round_) continue;
    if (!injected.lost_steps)
      injected.lost_steps = difference(injected.progress.step, progress.step);
    if (injected.lost_epochs) continue;
    injected.lost_epochs = difference(injected.progress.epoch, progress.epoch);
  }
}

std::vector<ExpectationResult> FaultReport::check_expectations(int exit_code,
                                                               const std::string& hash) const {
  std::vector<ExpectationResult> all;
  for (size_t i = 0; i < plan_.faults.size(); ++i) {
    const Fault& fault = plan_.faults[i];
    const std::string name = "fault " + std::to_string(i + 1) + ": " + describe(fault);
    bool was_injected = false;
    for (const InjectedFault& injected : injections_) {
      if (injected.fault != i) continue;
      was_injected = true;
      all.push_back({name, true, outcome_text(injected, fault),
                     injected.recovery ? to_seconds(*injected.recovery) : 0});
    }
    // A random fault need not occur in a short job.
    if (!was_injected) all.push_back({name, fault.every.has_value(), "never injected"});
  }
  if (!plan_.expect) return all;
  const Expectations& expect = *plan_.expect;
  all.push_back({"exit code", exit_code == expect.exit_code,
                 std::to_string(exit_code) + ", expected " + std::to_string(expect.exit_code)});
  if (expect.restarts) {
    const bool is_held = restarts_ >= expect.restarts->from && restarts_ <= expect.restarts->to;
    all.push_back({"restarts", is_held,
                   std::to_string(restarts_) + ", expected " + text_of(*expect.restarts)});
  }
  if (expect.recovery_max) all.push_back(check_recovery(injections_, plan_));
  if (expect.lost_steps_max) {
    all.push_back(check_loss(injections_, plan_, "lost steps", *expect.lost_steps_max,
                             &InjectedFault::lost_steps));
  }
  if (expect.lost_epochs_max) {
    all.push_back(check_loss(injections_, plan_, "lost training epochs", *expect.lost_epochs_max,
                             &InjectedFault::lost_epochs));
  }
  if (expect.final_hash) {
    const std::string& wanted = expect.final_hash->is;
    const std::string seen = hash.empty() ? "the file can't be read" : hash;
    all.push_back({"final hash of " + expect.final_hash->file, !hash.empty() && hash == wanted,
                   seen + ", expected " + wanted});
  }
  return all;
}

}  // namespace cpprun::faults
