#include "common/verdict.hpp"

#include <algorithm>

#include "common/check.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr size_t kRuleWidthMax = 60;
constexpr const char* kHint =
    "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";

std::string traceback_of(const WorkerEnd& end) {
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

std::string block(const Failure& failure, const WorkerEnd& end, size_t index) {
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

// The worker's own last word: what its error file says, else its last line on stderr.
std::string own_words(const WorkerEnd& end) {
  if (end.error && !end.error->message.empty()) return end.error->message;
  for (auto line = end.last_lines.rbegin(); line != end.last_lines.rend(); ++line) {
    if (!text::strip(*line).empty()) return *line;
  }
  return "";
}

std::string consequences(const Failure& failure, const WorkerEnd& root) {
  size_t stopped = 0;
  size_t followed = 0;
  for (const WorkerEnd& end : failure.ends) {
    if (&end == &root || end.is_success()) continue;
    (end.is_stopped_by_us ? stopped : followed) += 1;
  }
  std::string text;
  if (followed > 0) text += "; then " + text::count(followed, "other worker") + " failed too";
  if (stopped > 0) text += "; cpprun stopped " + text::count(stopped, "other worker");
  return text;
}

}  // namespace

std::string first_failure(const WorkerEnd& end, const std::string& host, const std::string& clock) {
  return "rank " + std::to_string(end.rank.value) + " (local rank " +
         std::to_string(end.local_rank.value) + ", pid " + std::to_string(end.pid) + ", on " +
         host + ") " + describe_end(end) + " at " + clock;
}

std::string verdict(const Failure& failure) {
  const WorkerEnd& root = failure.ends[root_cause(failure.ends)];
  std::string text = first_failure(root, failure.host, failure.clock(root.ended_at_wall)) +
                     consequences(failure, root) +
                     ". Restarts used: " + std::to_string(failure.restarts_used) + " of " +
                     std::to_string(failure.max_restarts) + ".";
  if (std::string words = own_words(root); !words.empty()) text += " Its last words: " + words;
  return text;
}

std::string failure_summary(const Failure& failure) {
  size_t root = root_cause(failure.ends);
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
