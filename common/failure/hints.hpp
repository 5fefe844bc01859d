// Hints: a table of frequent failures with their remedies. The failure summary adds the hint that
// matches; docs/how-to/troubleshooting.md shows the whole table. Pure.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "common/failure/failure_class.hpp"
#include "common/failure/worker_exit.hpp"

namespace cpprun {

struct Hint {
  std::string_view id;     // stable, for scripts: "port_in_use"
  std::string_view seen;   // heading: what the user sees
  std::string_view words;  // patterns, separated by '|'; one match is enough
  std::string_view cure;   // one or two sentences: the cause, and what to do
};

// In matching order.
std::span<const Hint> hints();

// The first hint with a pattern that matches the worker's error, its last lines or how it ended;
// nullptr if there is none. `why`: the reason why the worker could not be started, if so.
const Hint* hint_for(const WorkerExit& end, FailureClass kind, std::string_view why = "");

}  // namespace cpprun
