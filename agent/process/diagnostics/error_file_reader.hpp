// Reads a worker's error file. Blocks on its file system; call it on the I/O thread.
#pragma once

#include <optional>
#include <string>

#include "common/failure/worker_exit.hpp"

namespace cpprun {

// Unset: there is no such regular file. Never fails otherwise: parse_error_file().
std::optional<ErrorReport> read_error_file(const std::string& path);

// Stands for the report of a file that is not read within limits::kErrorFileTimeout. Does not
// block.
ErrorReport late_error_file(const std::string& path);

}  // namespace cpprun
