// The texts that cpprun prints when a job fails: the failure summary, a block of aligned fields,
// and torchrun's summary. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/failure/failure_class.hpp"
#include "common/failure/hints.hpp"
#include "common/failure/worker_exit.hpp"
#include "common/text_style.hpp"

namespace cpprun {

struct Failure {
  std::string title;             // the script, or the program
  std::string host;              // this node
  std::string interpreter;       // that runs the script; empty: none
  std::string log_folder;        // of this node; empty: none
  std::vector<WorkerExit> ends;  // of one round, in the kernel's order; successes are skipped
  int64_t restarts_used = 0;
  int64_t max_restarts = 0;
  std::optional<int64_t> max_hangs{};  // --max-hangs; unset: max_restarts counts for hangs too
  int64_t admin_restarts = 0;          // by admin command; not charged to the restart budget
  int64_t same_failures = 0;           // consecutive rounds with this failure at this step
  std::string why_no_retry;            // why another try cannot help; empty: it may
  RootCause root_cause;                // of all nodes
  int64_t world_size = 0;              // of the round that failed; 0: no worker ran
  int64_t same_startup_failures = 0;   // consecutive attempts with this same start-up failure
  // Format local time: "2026-11-21_14:03:59" and "14:03:59.113".
  std::function<std::string(WallTime)> stamp;
  std::function<std::string(WallTime)> clock;
};

struct FailureSummary {
  std::string headline;                                     // "train.py failed on rank 1 (...)"
  std::vector<std::pair<std::string, std::string>> fields;  // label and text; no text is empty
  std::string hint;                                         // "" if none is known
};

// "rank 1 (pid 4711, on node0) exited with code 1: ValueError: no such batch".
std::string failed_worker_text(const RootCause& root_cause);

FailureClass class_of(const RootCause& root_cause);
const Hint* hint_for(const RootCause& root_cause);

// What failed first, why, where, what followed, the restart budget, the logs, and a hint. Each fact
// stands once.
FailureSummary failure_summary(const Failure& failure);

// The summary as "error: headline", a line per field, and "hint: text", in at most `width` columns.
std::string summary_text(const FailureSummary& summary, bool has_color = false,
                         size_t width = kConsoleColumns);

// "the last 20 lines of rank 1 on stderr:" and the lines, indented; "" if there are fewer than two,
// since the summary itself shows the last one.
std::string last_lines_text(const RootCause& root_cause);

// torchrun's ChildFailedError text, for which scripts grep. Requires: a failure in `ends`.
std::string torchrun_summary(const Failure& failure);

}  // namespace cpprun
