// `cpprunctl events`: prints what happened to a job, from the events.jsonl of its run folder on
// this machine. The format of the lines is in docs/reference/events.md.
#pragma once

#include <string>

#include "common/result.hpp"

namespace cpprun {

struct EventsOptions {
  // A run folder, a --log-dir, the file itself, or a job that runs here; empty: the newest job that
  // runs here, else the newest one whose temporary folder was kept.
  std::string path;
  bool follows = false;  // until the run has finished
  bool is_json = false;  // print the lines unchanged
};

// Finds an events.jsonl. `path` as in EventsOptions, but not a job. An error names the places
// searched.
Result<std::string> find_events(const std::string& path);

// Prints to stdout. Blocks until the run finishes if `follows` is set.
Status show_events(const EventsOptions& options);

}  // namespace cpprun
