#include "common/failure/worker_exit.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "common/check.hpp"
#include "common/limits/agent.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

// File time stamps lag by up to one kernel tick: the file was written at most this much later.
constexpr int64_t kTickUs = 10'000;

// The agent may learn of a death so much later than it happened, and of several at once.
constexpr int64_t kNoticeUs = 100'000;

bool is_failure(const WorkerExit& end) { return !end.is_success(); }

bool is_killed(const WorkerExit& end) {
  return end.exit_code == -kSigKill && !end.is_stopped_by_us;
}

// The first death that `has_kind`; INT64_MAX: there is none.
WallTime first_death(const std::vector<WorkerExit>& ends, bool (*has_kind)(const WorkerExit&)) {
  WallTime first{INT64_MAX};
  for (const WorkerExit& end : ends) {
    if (has_kind(end)) first = std::min(first, end.ended_at_wall);
  }
  return first;
}

struct FirstDeaths {
  explicit FirstDeaths(const std::vector<WorkerExit>& ends)
      : any(first_death(ends, is_failure)), by_kill(first_death(ends, is_killed)) {}
  WallTime any;
  WallTime by_kill;
};

// The time of this failure, for the order of failures. The stamp in an error file counts only if
// the file was written before the first death: a later file describes a consequence. The file of
// the worker that died first was written before.
//
// SIGKILL is no consequence of another worker's error. So a file from about the time of such a
// death is a consequence of it, even if the agent reads that worker's exit first.
WallTime failure_time(const WorkerExit& end, const FirstDeaths& first) {
  if (!end.error || !end.error->stamp) return end.ended_at_wall;
  const WallTime written = end.error->file_time;
  const bool has_kill = first.by_kill.microseconds != INT64_MAX;
  const bool is_early = written.microseconds <= first.by_kill.microseconds - kNoticeUs;
  if (has_kill && !is_early && !is_killed(end))
    return std::max(end.ended_at_wall, WallTime{first.by_kill.microseconds + 1});
  const bool is_before = end.ended_at_wall == first.any || written <= first.any;
  return is_before ? std::min(*end.error->stamp, end.ended_at_wall) : end.ended_at_wall;
}

// Errors of Gloo, NCCL and torch's TCPStore after a peer has closed the connection.
constexpr std::array<std::string_view, 8> kLostPeerErrors{
    "Connection closed by peer",
    "Connection reset by peer",
    ": Broken pipe",
    "ncclRemoteError",
    "remote process exited or there was a network",
    "Connection was likely closed",
    "Failed to recv, got 0 bytes",
    "peer lost"};

// Errors of a program that ends because of a stop signal.
constexpr std::array<std::string_view, 4> kStopErrors{"SignalException", "KeyboardInterrupt",
                                                      "SystemExit", "Terminated"};

template <class Words>
bool has_any(const std::string& text, const Words& words) {
  return !text.empty() && std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return text.find(word) != std::string::npos;
  });
}

// The error message, else the last few lines: earlier lines may be harmless warnings.
std::string error_tail(const WorkerExit& end) {
  constexpr size_t kLines = 8;
  if (end.error && !end.error->message.empty()) return end.error->message;
  std::string text;
  const size_t all = end.last_lines.size();
  for (size_t i = all > kLines ? all - kLines : 0; i < all; ++i) text += end.last_lines[i] + "\n";
  return text;
}

// Whether a worker that the agent stopped was already ending with an exception of its own.
bool failed_before_stop(const WorkerExit& end) {
  if (end.exit_code <= 0) return false;
  const std::string tail = error_tail(end);
  const bool is_exception =
      tail.find("Error") != std::string::npos || tail.find("Exception") != std::string::npos;
  return is_exception && !has_any(tail, kStopErrors);
}

bool is_hang(const WorkerExit& end) { return end.is_hang(); }

// The newest lines that fit into limits::kLastLinesWireBytes.
std::vector<std::string> newest_lines(const std::vector<std::string>& lines) {
  size_t room = limits::kLastLinesWireBytes;
  std::vector<std::string> kept;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (line->size() > room || kept.size() == limits::kLastLines) break;
    room -= line->size();
    kept.push_back(text::printable(*line));
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace

WorkerExit for_the_wire(WorkerExit end) {
  const auto cut = [](const std::string& raw) {
    return text::cut(text::printable(raw), limits::kSummaryTextBytes);
  };
  if (end.error) {
    end.error->path = text::one_line(end.error->path, limits::kNameBytes);
    end.error->message = cut(end.error->message);
    end.error->traceback = cut(end.error->traceback);
  }
  end.hang = text::one_line(end.hang, limits::kNameBytes);
  end.last_lines = newest_lines(end.last_lines);
  return end;
}

RootCause for_the_wire(RootCause root_cause) {
  root_cause.node = text::one_line(root_cause.node, limits::kNameBytes);
  root_cause.end = for_the_wire(std::move(root_cause.end));
  root_cause.why = text::cut(text::printable(root_cause.why), limits::kFailureSummaryBytes);
  return root_cause;
}

bool is_consequence(const WorkerExit& end) {
  if (!end.error && end.last_lines.empty()) return false;
  return (end.error && end.error->is_consequence) || has_any(error_tail(end), kLostPeerErrors);
}

bool has_own_cause(const WorkerExit& end) {
  if (end.is_hang()) return true;
  if (end.is_success() || is_consequence(end)) return false;
  if (!end.is_stopped_by_us) return true;
  return (end.error && !has_any(error_tail(end), kStopErrors)) || failed_before_stop(end);
}

Duration lived(const WorkerExit& end) {
  int64_t ns = 0;
  const bool overflows =
      __builtin_sub_overflow(end.ended_at.nanoseconds(), end.started_at.nanoseconds(), &ns);
  return overflows || ns < 0 ? Duration{} : Duration(ns);
}

Instant happened_at(const WorkerExit& end) {
  if (!end.error) return end.ended_at;
  int64_t lead = 0;
  const bool overflows = __builtin_sub_overflow(end.ended_at_wall.microseconds,
                                                end.error->file_time.microseconds, &lead);
  const bool is_sane =
      !overflows && lead >= kTickUs && lead - kTickUs <= lived(end) / std::chrono::microseconds(1);
  return is_sane ? end.ended_at - std::chrono::microseconds(lead - kTickUs) : end.ended_at;
}

size_t root_cause_index(const std::vector<WorkerExit>& ends) {
  if (auto hung = std::find_if(ends.begin(), ends.end(), is_hang); hung != ends.end()) {
    return static_cast<size_t>(hung - ends.begin());
  }
  const FirstDeaths first(ends);
  size_t root = ends.size();
  bool root_has_cause = false;  // then ends without a cause of their own do not replace it
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].is_success()) continue;
    const bool has_cause = has_own_cause(ends[i]);
    if (root != ends.size()) {
      if (root_has_cause && !has_cause) continue;
      const bool is_later = failure_time(ends[i], first) >= failure_time(ends[root], first);
      if (root_has_cause == has_cause && is_later) continue;
    }
    root = i;
    root_has_cause = has_cause;
  }
  CPPRUN_CHECK(root < ends.size());
  return root;
}

std::string describe_end(const WorkerExit& end) {
  if (end.is_hang()) return "hung (" + end.hang + ")";
  if (end.signal() == 0) return "exited with code " + std::to_string(end.exit_code);
  std::string text = "was killed by " + signal_name(end.signal());
  if (end.is_oom_kill) text += " (the kernel's OOM killer: out of memory)";
  if (end.has_core) text += " (core dumped)";
  return text;
}

}  // namespace cpprun
