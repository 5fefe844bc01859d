#include "common/faults/account.hpp"

#include <algorithm>
#include <cstdio>

#include "common/limits/faults.hpp"

namespace cpprun::faults {
namespace {

std::string shown_seconds(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f s", to_seconds(duration));
  return text;
}

std::string shown(const Span& span) {
  const std::string from = std::to_string(span.from);
  return span.from == span.to ? from : from + " to " + std::to_string(span.to);
}

std::optional<int64_t> difference(const std::optional<int64_t>& before,
                                  const std::optional<int64_t>& after) {
  if (!before || !after) return std::nullopt;
  return std::max<int64_t>(0, *before - *after);
}

std::string account_of(const Strike& strike, const Fault& fault) {
  std::string text = strike.where;
  if (strike.recovery) {
    text += "; all workers running again after " + shown_seconds(*strike.recovery);
  } else {
    text += fault.is_survived() ? "; the round went on" : "; no round followed";
  }
  if (strike.lost_steps) text += "; lost steps: " + std::to_string(*strike.lost_steps);
  if (strike.lost_epochs) {
    text += "; lost training epochs: " + std::to_string(*strike.lost_epochs);
  }
  return text;
}

Verdict of_recovery(const std::vector<Strike>& strikes, const Plan& plan) {
  const Duration most = *plan.expect->recovery_max;
  Verdict verdict{"recovery", true, "nothing had to recover"};
  Duration longest{};
  for (const Strike& strike : strikes) {
    const Fault& fault = plan.faults[strike.fault];
    if (!strike.recovery && fault.is_survived()) continue;
    if (!strike.recovery) {
      return {"recovery", false,
              "no round followed " + describe(fault) + " (" + strike.where + ")"};
    }
    longest = std::max(longest, *strike.recovery);
    verdict.text =
        "at most " + shown_seconds(longest) + ", expected at most " + shown_seconds(most);
  }
  verdict.is_held = longest <= most;
  verdict.seconds = to_seconds(longest);
  return verdict;
}

// Steps or training epochs, by what a strike has of them.
Verdict of_loss(const std::vector<Strike>& strikes, const Plan& plan, const char* noun,
                int64_t most, std::optional<int64_t> Strike::*lost) {
  int64_t worst = 0;
  for (const Strike& strike : strikes) {
    const bool is_known = (strike.*lost).has_value();
    if (is_known) worst = std::max(worst, *(strike.*lost));
    if (is_known || plan.faults[strike.fault].is_survived()) continue;
    return {noun, false,
            "not known after " + strike.where +
                ": the program must say where it is (fault_point of the worker library)"};
  }
  return {noun, worst <= most,
          "at most " + std::to_string(worst) + ", expected at most " + std::to_string(most)};
}

}  // namespace

void Account::on_struck(Instant now, size_t fault, int64_t round, std::string where,
                        Progress progress) {
  if (fault >= plan_.faults.size() || strikes_.size() >= limits::kFaultsInAccount) return;
  strikes_.push_back(Strike{fault, std::move(where), now, round, progress});
}

void Account::on_started(Instant now, int64_t round, int64_t restarts) {
  round_ = round;
  restarts_ = restarts;
  for (Strike& strike : strikes_) {
    if (!strike.recovery && strike.round < round) strike.recovery = now - strike.at;
  }
}

void Account::on_began(Progress progress) {
  for (Strike& strike : strikes_) {
    if (strike.round >= round_) continue;
    if (!strike.lost_steps) strike.lost_steps = difference(strike.progress.step, progress.step);
    if (strike.lost_epochs) continue;
    strike.lost_epochs = difference(strike.progress.training_epoch, progress.training_epoch);
  }
}

std::vector<Verdict> Account::judge(int exit_code, const std::string& hash) const {
  std::vector<Verdict> all;
  for (size_t i = 0; i < plan_.faults.size(); ++i) {
    const Fault& fault = plan_.faults[i];
    const std::string name = "fault " + std::to_string(i + 1) + ": " + describe(fault);
    bool has_struck = false;
    for (const Strike& strike : strikes_) {
      if (strike.fault != i) continue;
      has_struck = true;
      all.push_back({name, true, account_of(strike, fault),
                     strike.recovery ? to_seconds(*strike.recovery) : 0});
    }
    // Random ones may well not come in a short job.
    if (!has_struck) all.push_back({name, fault.every.has_value(), "never struck"});
  }
  if (!plan_.expect) return all;
  const Expectations& expect = *plan_.expect;
  all.push_back({"exit code", exit_code == expect.exit_code,
                 std::to_string(exit_code) + ", expected " + std::to_string(expect.exit_code)});
  if (expect.restarts) {
    const bool is_held = restarts_ >= expect.restarts->from && restarts_ <= expect.restarts->to;
    all.push_back(
        {"restarts", is_held, std::to_string(restarts_) + ", expected " + shown(*expect.restarts)});
  }
  if (expect.recovery_max) all.push_back(of_recovery(strikes_, plan_));
  if (expect.lost_steps_max) {
    all.push_back(
        of_loss(strikes_, plan_, "lost steps", *expect.lost_steps_max, &Strike::lost_steps));
  }
  if (expect.lost_epochs_max) {
    all.push_back(of_loss(strikes_, plan_, "lost training epochs", *expect.lost_epochs_max,
                          &Strike::lost_epochs));
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
