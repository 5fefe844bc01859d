// Parses one event of events.jsonl: as a line to print, and the fields that log files need. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cpprun::ctl {

// "14:03:59.113  node0  rank 1 (pid 4711) was killed by SIGKILL" with a newline. An event unknown
// to this version is printed with its fields. Nothing if `line` is not an event. Control characters
// in texts of workers are replaced by '?'. Without `is_verbose` there is no text for how long a
// round's start took.
std::optional<std::string> event_text(std::string_view line, bool is_verbose = false,
                                      bool has_color = false);

// A run, as recorded in its events.
struct RunSummary {
  std::string run_id;
  std::string script;
  int64_t nodes = 0, workers = 0;  // of the newest round
  int64_t restarts_used = 0, max_restarts = 0;
  int64_t begun_us = -1;  // since 1970
  int64_t ended_us = -1;  // the time of its newest event
  std::string outcome;    // "" without the event `finished`
  int64_t exit_code = -1;
  std::string failure;  // the failure summary; empty: the run has not failed

  // The next event; ignores lines that are none.
  void take(std::string_view line);
};

// The fields that identify a round or a worker; -1 if absent.
struct RoundEvent {
  std::string name;
  int64_t time_us = -1;  // since 1970
  int64_t round = -1;
  int64_t restart_count = -1;
  int64_t rank = -1;
  int64_t local_rank = -1;
};
// Nothing if `line` is not an event of a round.
std::optional<RoundEvent> round_event(std::string_view line);

}  // namespace cpprun::ctl
