#include "common/failure/failure_class.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "common/failure/exception_text.hpp"
#include "common/failure/fault_dump.hpp"
#include "common/limits/agent.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr std::array kOwnFaults{"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE",
                                "SIGILL",  "SIGTRAP", "SIGSYS"};

constexpr int kUncaughtException = 1;  // Python's exit code

bool is_own_fault(int signal) {
  const std::string name = signal_name(signal);
  return std::find(kOwnFaults.begin(), kOwnFaults.end(), name) != kOwnFaults.end();
}

// Errors of Python, C++ and LibTorch after a failed allocation of main memory. GPU memory has its
// own error, torch.OutOfMemoryError.
bool is_short_of_memory(std::string_view error) {
  return error.starts_with("MemoryError") || error.find("std::bad_alloc") != error.npos ||
         error.find("DefaultCPUAllocator: can't allocate memory") != error.npos;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The first line of a Python exception, such as "ValueError: no" or "torch.OutOfMemoryError: no".
bool is_exception(std::string_view line) {
  const std::string_view type = line.substr(0, line.find(": "));
  const bool is_name = type.size() < line.size() && type.find(' ') == type.npos;
  return is_name && (type.ends_with("Error") || type.ends_with("Exception"));
}

// The first line of a Python warning. Its line of code follows.
bool is_warning(std::string_view line) { return line.find("Warning: ") != line.npos; }

// The exception, or the last line that is not blank, at the end of these lines.
std::string last_error(const std::vector<std::string>& lines) {
  std::string last;     // the last line that is not blank
  std::string message;  // it and the lines before, up to the exception that they belong to
  for (auto raw = lines.rbegin(); raw != lines.rend(); ++raw) {
    const std::string_view line = plain_line(*raw);
    const std::string stripped(text::strip(line));
    if (stripped.empty()) continue;
    if (last.empty()) last = stripped;
    message = stripped + (message.empty() ? "" : "\n" + message);
    if (is_indented(line)) continue;
    if (is_exception(line)) return message;
    return is_warning(line) && message != last ? "" : last;
  }
  return last;
}

}  // namespace

const char* name_of(FailureClass kind) {
  constexpr std::array kNames{"user_error", "crash",         "killed",    "out_of_memory",
                              "lost_peer",  "start_failure", "lost_node", "hang"};
  return kNames[static_cast<size_t>(kind)];
}

FailureClass classify(const WorkerExit& end) {
  if (end.is_hang()) return FailureClass::Hang;
  if (end.is_oom_kill) return FailureClass::OutOfMemory;
  if (end.signal() == kSigAbort && is_short_of_memory(error_text(end)))
    return FailureClass::OutOfMemory;
  if (end.signal() != 0) {
    return is_own_fault(end.signal()) ? FailureClass::Crash : FailureClass::Killed;
  }
  if (is_consequence(end)) return FailureClass::LostPeer;
  return is_short_of_memory(error_text(end)) ? FailureClass::OutOfMemory : FailureClass::UserError;
}

std::string error_text(const WorkerExit& end) {
  const bool has_message = end.error && end.error->is_readable && !end.error->message.empty();
  if (has_message) return end.error->message;
  const int signal = end.signal();
  const std::optional<FaultDump> dump = find_fault_dump(end.last_lines);
  const bool is_uncaught = !dump && (end.exit_code == kUncaughtException || signal == kSigInt);
  std::string error = python_exception(end.last_lines, is_uncaught);
  if (error.empty() && signal == kSigAbort) error = cpp_exception(end.last_lines);
  if (!error.empty()) return error;
  // The last line before another signal than SIGABRT does not explain the signal.
  const bool is_explained = signal == 0 || signal == kSigAbort;
  if (!dump) return is_explained ? last_error(end.last_lines) : "";
  // Before abort() a program prints why.
  const bool has_aborted = dump->error == "Fatal Python error: Aborted";
  if (!has_aborted) return dump->error;
  const std::string reason = last_error(
      {end.last_lines.begin(), end.last_lines.begin() + static_cast<std::ptrdiff_t>(dump->begin)});
  return reason.empty() ? dump->error : reason;
}

std::string signature_of(const WorkerExit& end) {
  std::string text = name_of(classify(end));
  text += " " + std::to_string(end.exit_code) + " ";
  for (char c : error_text(end)) {
    if (!is_digit(c)) text += c;
  }
  return text;
}

bool is_startup_failure(const WorkerExit& end) { return lived(end) < limits::kStartUp; }

}  // namespace cpprun
