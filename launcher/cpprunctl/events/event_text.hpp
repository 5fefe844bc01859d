// Parses one event of events.jsonl: as a line to print, and the fields that log files need. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cpprun::ctl {

// "14:03:59.113  node0  rank 1 (pid 4711) was killed by SIGKILL" with a newline. An event unknown
// to this version is printed with its fields. Nothing if `line` is not an event. Control characters
// in texts of workers are replaced by '?'.
std::optional<std::string> event_text(std::string_view line);

// The fields that identify a round or a worker; -1 if absent.
struct LogEvent {
  std::string name;
  int64_t time_us = -1;  // since 1970
  int64_t round = -1;
  int64_t restart_count = -1;
  int64_t rank = -1;
  int64_t local_rank = -1;
};
// Nothing if `line` is not an event of a round.
std::optional<LogEvent> log_event(std::string_view line);

}  // namespace cpprun::ctl
