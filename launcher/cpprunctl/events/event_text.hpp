// One event of events.jsonl: as a line for people, and as far as the log files are concerned. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cpprun::ctl {

// "14:03:59.113  node0  rank 1 (pid 4711) was killed by SIGKILL", with its end. An event that this
// version does not know is shown with its fields. Nothing, if `line` is no event. Control
// characters in texts of workers are shown as '?'.
std::optional<std::string> event_text(std::string_view line);

// What an event says of a round or a worker of it; -1 where it does not say.
struct LogEvent {
  std::string name;
  int64_t time_us = -1;  // since 1970
  int64_t round = -1;
  int64_t restart_count = -1;
  int64_t rank = -1;
  int64_t local_rank = -1;
};
// Nothing, if `line` is no event of a round.
std::optional<LogEvent> log_event(std::string_view line);

}  // namespace cpprun::ctl
