// What Python's faulthandler prints to stderr when a fatal signal ends the interpreter, for
// instance with PYTHONFAULTHANDLER=1: the error, the stack of each thread with the deepest frame
// first, and the loaded extension modules. Py_FatalError prints the same. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cpprun {

struct FaultDump {
  size_t begin = 0;   // the number of lines before it
  std::string error;  // "Fatal Python error: Segmentation fault"; "": the lines have only its end
};

// The dump with which the lines of a worker's stderr end.
std::optional<FaultDump> find_fault_dump(const std::vector<std::string>& lines);

// Whether the stack of the thread that failed follows.
bool is_failed_thread(std::string_view line);

}  // namespace cpprun
