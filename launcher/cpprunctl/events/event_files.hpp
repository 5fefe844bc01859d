// Finds the events files of jobs on this machine.
#pragma once

#include <string>

#include "common/result.hpp"

namespace cpprun::ctl {

// The path of an events.jsonl. `path` as in EventsOptions. An error names the places searched.
Result<std::string> find_events(const std::string& path);

}  // namespace cpprun::ctl
