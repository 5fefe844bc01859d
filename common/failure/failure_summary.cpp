#include "common/failure/failure_summary.hpp"

#include <algorithm>

#include "common/check.hpp"
#include "common/failure/error_location.hpp"
#include "common/limits/agent.hpp"
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

std::string numbered(const char* noun, int64_t number) {
  return noun + (" " + std::to_string(number));
}

// "code 1", "signal SIGKILL (core dumped)".
std::string exit_text(const WorkerExit& end) {
  if (end.signal() == 0) return numbered("code", end.exit_code);
  return "signal " + signal_name(end.signal()) +
         (end.is_oom_kill ? " (the kernel's OOM killer: out of memory)" : "") +
         (end.has_core ? " (core dumped)" : "");
}

// "rank 0 failed too (code 75)" for the first few, and a number for the rest.
std::string followers_text(const std::vector<const WorkerExit*>& followed) {
  constexpr size_t kNamed = 3;
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(kNamed, followed.size()); ++i) {
    parts.push_back(numbered("rank", followed[i]->rank.value) + " failed too (" +
                    exit_text(*followed[i]) + ")");
  }
  if (followed.size() > kNamed) {
    parts.push_back(std::to_string(followed.size() - kNamed) + " more failed too");
  }
  return text::join(parts, ", ");
}

// Of a worker that has left no error text: "killed by SIGSEGV", "exited with code 3".
std::string cause_text(const WorkerExit& end) {
  constexpr std::string_view kWas = "was ";
  const std::string text = describe_end(end);
  return text.starts_with(kWas) ? text.substr(kWas.size()) : text;
}

std::string stopped_text(const std::vector<const WorkerExit*>& stopped) {
  if (stopped.empty()) return "";
  const std::string what = stopped.size() == 1
                               ? numbered("rank", stopped.front()->rank.value) + " was"
                               : text::count(stopped.size(), "worker") + " were";
  return what + " stopped by cpprun";
}

// What became of all workers of the round but the root cause and those that succeeded.
std::string others_text(const Failure& failure) {
  std::vector<const WorkerExit*> stopped;
  std::vector<const WorkerExit*> followed;
  int64_t known = 0;
  const WorkerExit& root = failure.root_cause.end;
  for (const WorkerExit& end : failure.ends) {
    if (end.rank == root.rank && end.pid == root.pid) continue;
    ++known;
    if (!end.is_success()) (end.is_stopped_by_us ? stopped : followed).push_back(&end);
  }
  std::vector<std::string> parts;
  if (!followed.empty()) parts.push_back(followers_text(followed));
  if (!stopped.empty()) parts.push_back(stopped_text(stopped));
  const int64_t rest = failure.world_size - 1 - known;
  if (rest > 0) {
    parts.push_back(text::count(static_cast<size_t>(rest), "other worker") +
                    " ended with the round");
  }
  return text::join(parts, "; ");
}

std::string restarts_text(const Failure& failure) {
  const bool is_hang = failure.root_cause.end.is_hang();
  const bool has_own_budget = is_hang && failure.max_hangs;
  const int64_t max = has_own_budget ? *failure.max_hangs : failure.max_restarts;
  const std::string option = has_own_budget ? "--max-hangs" : "--max-restarts";
  std::string text = std::to_string(failure.restarts_used) + " of " + std::to_string(max) + " used";
  if (is_hang) text += " after hangs";
  if (max == 0) text += " (allow some with " + option + "=N)";
  if (max > 0 && has_own_budget) text += " (" + option + ")";
  if (failure.admin_restarts < 1) return text;
  return text + "; " + text::count(static_cast<size_t>(failure.admin_restarts), "more restart") +
         " by cpprunctl restart";
}

std::string ordinal(int64_t number) {
  const int64_t last = number % 10;
  const bool is_teen = number % 100 >= 11 && number % 100 <= 13;
  const char* ending = is_teen || last > 3 || last == 0 ? "th"
                       : last == 1                      ? "st"
                       : last == 2                      ? "nd"
                                                        : "rd";
  return std::to_string(number) + ending;
}

// "same failure at step 12, 2nd time".
std::string same_failure_text(const Failure& failure) {
  if (failure.same_failures < 2) return "";
  const int64_t step = failure.root_cause.end.step;
  const std::string place = step < 0 ? " (its step is unknown)" : numbered(" at step", step);
  return "same failure" + place + ", " + ordinal(failure.same_failures) + " time";
}

std::string repeated_text(const Failure& failure) {
  if (failure.same_startup_failures < 2) return same_failure_text(failure);
  return "failed at start-up in the same way in " + std::to_string(failure.same_startup_failures) +
         " attempts in a row; another restart would not help";
}

std::string no_retry_text(const Failure& failure) {
  if (failure.why_no_retry.empty()) return "";
  return failure.why_no_retry + "; another try would not help (--on-repeat=stop)";
}

// The reason why the worker's error file cannot be read.
std::string unreadable_text(const WorkerExit& end) {
  return end.error && !end.error->is_readable ? end.error->message : "";
}

// Without the words of the headline.
std::string start_error(const RootCause& root_cause) {
  const std::string headline = "a worker could not be started on " + root_cause.node + ": ";
  const bool has_headline = root_cause.why.starts_with(headline);
  return has_headline ? root_cause.why.substr(headline.size()) : root_cause.why;
}

// "train.py:4 in load, 0.3 s after start (14:03:59.113)".
std::string place_text(const WorkerExit& end, const std::string& clock) {
  std::string text = error_location(end);
  if (end.started_at == Instant{}) return text.empty() ? clock : text + " (" + clock + ")";
  text += (text.empty() ? "" : ", ") + text::seconds(lived(end)) + " after start";
  return text + " (" + clock + ")";
}

}  // namespace

FailureClass class_of(const RootCause& root_cause) {
  return root_cause.why.empty() ? classify(root_cause.end) : FailureClass::StartFailure;
}

const Hint* hint_for(const RootCause& root_cause) {
  return hint_for(root_cause.end, class_of(root_cause), root_cause.why);
}

std::string failed_worker_text(const RootCause& root_cause) {
  if (!root_cause.why.empty()) return root_cause.why;
  const WorkerExit& end = root_cause.end;
  const std::string error = text::one_line(error_text(end), limits::kErrorTextBytes);
  return numbered("rank", end.rank.value) + " (" + numbered("pid", end.pid) + ", on " +
         root_cause.node + ") " + describe_end(end) + (error.empty() ? "" : ": " + error);
}

FailureSummary failure_summary(const Failure& failure) {
  const RootCause& root_cause = failure.root_cause;
  const WorkerExit& end = root_cause.end;
  FailureSummary summary;
  const auto add = [&summary](const char* label, std::string text) {
    if (!text.empty()) summary.fields.emplace_back(label, std::move(text));
  };
  if (root_cause.why.empty()) {
    const std::string verb = end.is_hang() ? " hung on rank " : " failed on rank ";
    summary.headline = failure.title + verb + std::to_string(end.rank.value) + " (node " +
                       root_cause.node + ", " + numbered("local rank", end.local_rank.value) + ")";
    const std::string error = end.is_hang() ? end.hang : error_text(end);
    add("cause", error.empty() ? cause_text(end) : error);
    add("at", place_text(end, failure.clock(end.ended_at_wall)));
    const bool has_exit = !error.empty() && !end.is_hang();
    add("exit", (has_exit ? exit_text(end) + ", " : "") + numbered("pid", end.pid));
    add("others", others_text(failure));
  } else {
    summary.headline = "no worker could be started on " + root_cause.node;
    add("cause", start_error(root_cause));
  }
  add("restarts", restarts_text(failure));
  add("repeated", repeated_text(failure));
  add("stopped", no_retry_text(failure));
  add("note", unreadable_text(end));
  add("logs", failure.log_folder);
  if (!failure.log_folder.empty()) add("details", "cpprunctl events " + failure.log_folder);
  if (const Hint* hint = hint_for(root_cause)) {
    summary.hint =
        hint_text(*hint, root_cause, failure.interpreter) + " [" + std::string(hint->id) + "]";
  }
  return summary;
}

std::string summary_text(const FailureSummary& summary, bool has_color, size_t width) {
  constexpr size_t kIndent = 12;
  std::string text = styled(TextStyle::Error, "error:", has_color) + " " +
                     styled(TextStyle::Strong, summary.headline, has_color) + "\n";
  for (const auto& [label, value] : summary.fields) {
    std::string line = "  " + label;
    line.resize(kIndent, ' ');
    // A terminal wraps a path or command so that it can be copied as one.
    const bool is_copied =
        label == std::string_view("logs") || label == std::string_view("details");
    text += styled(TextStyle::Faint, line, has_color) +
            (is_copied ? value : indented(value, kIndent, width)) + "\n";
  }
  if (summary.hint.empty()) return text;
  constexpr size_t kHintIndent = 6;
  return text + styled(TextStyle::Note, "hint:", has_color) + " " +
         indented(summary.hint, kHintIndent, width) + "\n";
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
