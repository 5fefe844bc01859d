#include "common/failure/failure_summary.hpp"

#include <algorithm>

#include "common/check.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr size_t kRuleWidthMax = 60;
constexpr const char* kHint =
    "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";

std::string traceback_of(const WorkerExit& end) {
  if (end.error && !end.error->traceback.empty()) return end.error->traceback;
  if (end.error && !end.error->message.empty()) return end.error->message;
  if (end.signal() != 0) {
    return "Signal " + std::to_string(end.signal()) + " (" + signal_name(end.signal()) +
           ") received by PID " + std::to_string(end.pid);
  }
  return kHint;
}

std::string indent_lines(const std::string& text) {
  std::string out;
  for (char c : text) {
    out += c;
    if (c == '\n') out += "  ";
  }
  return out;
}

std::string block(const Failure& failure, const WorkerExit& end, size_t index) {
  bool has_file = end.error && end.error->is_readable && !end.error->path.empty();
  std::string file = has_file ? end.error->path : "<N/A>";
  return "[" + std::to_string(index) + "]:\n" +
         "  time      : " + failure.stamp(end.ended_at_wall) + "\n" +
         "  host      : " + failure.host + "\n" +
         "  rank      : " + std::to_string(end.rank.value) +
         " (local_rank: " + std::to_string(end.local_rank.value) + ")\n" +
         "  exitcode  : " + std::to_string(end.exit_code) + " (pid: " + std::to_string(end.pid) +
         ")\n" + "  error_file: " + file + "\n" +
         "  traceback : " + indent_lines(traceback_of(end)) + "\n";
}

size_t longest_line(const std::string& text) {
  size_t longest = 0;
  for (const std::string& line : text::split(text, '\n')) longest = std::max(longest, line.size());
  return longest;
}

// " The other 3 workers ended because of this (...).": all workers of the round but the root cause
// and those that succeeded.
std::string consequences(const Failure& failure) {
  size_t stopped = 0;
  size_t followed = 0;
  size_t well = 0;
  const WorkerExit& root = failure.root_cause.end;
  for (const WorkerExit& end : failure.ends) {
    if (end.rank == root.rank && end.pid == root.pid) continue;
    (end.is_success() ? well : end.is_stopped_by_us ? stopped : followed) += 1;
  }
  const int64_t all = failure.world_size - 1 - static_cast<int64_t>(well);
  if (all <= 0) return "";
  std::string text =
      " The other " + text::count(static_cast<size_t>(all), "worker") + " ended because of this";
  if (static_cast<int64_t>(stopped + followed) != all || followed == 0) return text + ".";
  return text + " (" + std::to_string(followed) + " failed too, " + std::to_string(stopped) +
         " stopped by cpprun).";
}

std::string budget_text(const Failure& failure) {
  const std::string used = " Restarts used: " + std::to_string(failure.restarts_used) + " of " +
                           std::to_string(failure.max_restarts);
  if (failure.max_restarts == 0) return used + " (--max-restarts).";
  return used + (failure.restarts_used < failure.max_restarts ? "." : ": none is left.");
}

std::string operators_text(const Failure& failure) {
  if (failure.admin_restarts < 1) return "";
  return " Operators asked for " +
         text::count(static_cast<size_t>(failure.admin_restarts), "restart") + " before.";
}

std::string repeated_text(const Failure& failure) {
  if (failure.same_startup_failures < 2) return "";
  return " It failed at start-up in the same way in " +
         std::to_string(failure.same_startup_failures) +
         " attempts in a row, so another restart would not have helped.";
}

// The reason why the worker's error file cannot be read.
std::string unreadable_text(const WorkerExit& end) {
  if (!end.error || end.error->is_readable || end.error->message.empty()) return "";
  return " Note: " + end.error->message + ".";
}

std::string lived_text(const WorkerExit& end) {
  if (end.started_at == Instant{}) return "";
  return ", " + text::seconds(lived(end)) + " after its start";
}

}  // namespace

FailureClass class_of(const RootCause& root_cause) {
  return root_cause.why.empty() ? classify(root_cause.end) : FailureClass::StartFailure;
}

const Hint* hint_for(const RootCause& root_cause) {
  return hint_for(root_cause.end, class_of(root_cause), root_cause.why);
}

std::string first_failure(const WorkerExit& end, const std::string& host,
                          const std::string& clock) {
  return "rank " + std::to_string(end.rank.value) + " (local rank " +
         std::to_string(end.local_rank.value) + ", pid " + std::to_string(end.pid) + ", on " +
         host + ") " + describe_end(end) + " at " + clock;
}

std::string failure_summary(const Failure& failure) {
  const RootCause& root_cause = failure.root_cause;
  const WorkerExit& end = root_cause.end;
  std::string text;
  if (!root_cause.why.empty()) {
    text = "no worker could be started on " + root_cause.node + ": " + root_cause.why;
  } else {
    text = first_failure(end, root_cause.node, failure.clock(end.ended_at_wall)) + lived_text(end);
  }
  text += std::string(" [class=") + name_of(class_of(root_cause)) + "].";
  if (root_cause.why.empty()) text += consequences(failure);
  text += budget_text(failure) + operators_text(failure) + repeated_text(failure);
  text += unreadable_text(root_cause.end);
  if (const Hint* hint = hint_for(root_cause)) {
    text += " Hint (" + std::string(hint->id) + "): " + std::string(hint->cure) + ".";
  }
  const std::string words = root_cause.why.empty() ? error_text(end) : "";
  return words.empty() ? text : text + " Its last words: " + words;
}

std::string last_lines_text(const RootCause& root_cause) {
  const std::vector<std::string>& lines = root_cause.end.last_lines;
  if (!root_cause.why.empty() || lines.size() < 2) return "";
  std::string text = "the last " + std::to_string(lines.size()) + " lines of rank " +
                     std::to_string(root_cause.end.rank.value) + " on stderr:\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

std::string torchrun_summary(const Failure& failure) {
  size_t root = root_cause_index(failure.ends);
  std::string others;
  std::string first;
  size_t index = 0;
  for (size_t i = 0; i < failure.ends.size(); ++i) {
    if (failure.ends[i].is_success()) continue;
    std::string text = block(failure, failure.ends[i], index++);
    if (i == root) {
      first = text;
    } else {
      others += text;
    }
  }
  if (others.empty()) others = "  <NO_OTHER_FAILURES>\n";
  std::string title = failure.title + " FAILED";
  size_t width =
      std::min(kRuleWidthMax, std::max({title.size(), longest_line(others), longest_line(first)}));
  std::string thin(width, '-');
  std::string thick(width, '=');
  return "\n" + thick + "\n" + title + "\n" + thin + "\nFailures:\n" + others + thin +
         "\nRoot Cause (first observed failure):\n" + first + thick + "\n";
}

}  // namespace cpprun
