// `cpprunctl events`: what happened to a job, from the events.jsonl of its run folder on this
// machine. The lines are docs/events.md's.
#pragma once

#include <string>

#include "common/result.hpp"

namespace cpprun {

struct EventsOptions {
  // A run folder, a --log-dir, or the file itself; empty: the newest job that runs here, else the
  // newest whose temporary folder was kept.
  std::string path;
  bool follows = false;  // until the run has finished
  bool is_json = false;  // the lines as they are
};

// Prints to stdout. Thread: one, and it may wait for new lines without end.
Status show_events(const EventsOptions& options);

}  // namespace cpprun
