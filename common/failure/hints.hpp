// Hints: what is known of failures that many people meet, as a table. The failure summary adds the
// hint that fits; docs/troubleshooting.md is this table for people who read. Pure.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "common/failure/failure_class.hpp"
#include "common/failure/worker_exit.hpp"

namespace cpprun {

struct Hint {
  std::string_view id;     // stable, for scripts: "port_in_use"
  std::string_view seen;   // a heading: what people see
  std::string_view words;  // what the worker said, separated by '|'; any one of them fits
  std::string_view cure;   // one or two sentences: why, and what to do
};

// In the order in which they are tried.
std::span<const Hint> hints();

// The first hint whose words stand in what the worker said (its error, its last lines), or that
// fits how it ended. nullptr: none is known. `why`: what went wrong before it ran, if anything.
const Hint* hint_for(const WorkerExit& end, FailureClass kind, std::string_view why = "");

}  // namespace cpprun
