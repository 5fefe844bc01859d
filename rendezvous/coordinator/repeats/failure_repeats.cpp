#include "rendezvous/coordinator/repeats/failure_repeats.hpp"

#include <algorithm>

#include "common/failure/fingerprint.hpp"
#include "common/limits/agent.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr int64_t kRepeatsMax = 1'000'000'000;  // as the greatest --max-restarts

// Failures of restarts in a row that came before any progress. Where nothing of the job's progress
// is known, only equal failures count.
int64_t fruitless_restarts(const std::string& fingerprint, const JobProgress& made,
                           const control::PastFailures& past) {
  if (past.last.empty() || has_progressed(made, past)) return 0;
  const bool is_known = past.best_step >= 0 || past.best_snapshot >= 0;
  return is_known || fingerprint == past.last ? past.fruitless + 1 : 0;
}

}  // namespace

bool has_progressed(const JobProgress& made, const control::PastFailures& past) {
  return made.step > past.best_step || made.snapshot > past.best_snapshot;
}

void note_progress(const JobProgress& made, control::PastFailures& past) {
  if (has_progressed(made, past)) past.fruitless = 0;
  past.best_step = std::max(past.best_step, made.step);
  past.best_snapshot = std::max(past.best_snapshot, made.snapshot);
}

std::string note_failure(const RootCause& cause, const JobProgress& made,
                         control::PastFailures& past) {
  const std::string fingerprint = cause.why.empty() ? fingerprint_of(cause.end) : "";
  if (fingerprint.empty()) {
    note_progress(made, past);
    return "";
  }
  past.fruitless = fruitless_restarts(fingerprint, made, past);
  const bool is_same = fingerprint == past.last && cause.end.step == past.last_step;
  past.repeats = is_same ? past.repeats + 1 : 1;
  past.last = fingerprint;
  past.last_step = cause.end.step;
  note_progress(made, past);
  if (is_import_or_syntax_error(cause.end)) return "each start brings this error again";
  if (past.repeats > 1 && past.last_step >= 0) {
    return "the same failure came again at step " + std::to_string(past.last_step);
  }
  if (past.fruitless < limits::kFruitlessRestarts) return "";
  return text::count(static_cast<size_t>(past.fruitless), "restart") +
         " in a row brought no progress";
}

control::PastFailures sane(control::PastFailures past) {
  past.last = past.last.substr(0, limits::kFingerprintBytes);
  past.repeats = std::clamp<int64_t>(past.repeats, 0, kRepeatsMax);
  past.fruitless = std::clamp<int64_t>(past.fruitless, 0, kRepeatsMax);
  past.quick = std::clamp<int64_t>(past.quick, 0, kRepeatsMax);
  return past;
}

}  // namespace cpprun
