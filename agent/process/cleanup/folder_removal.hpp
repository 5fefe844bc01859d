// Removes a folder with its content within a time limit: a file server may not answer, and some
// file systems rename a removed file that is still open.
#pragma once

#include <functional>
#include <string>

#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

// Error: a part of it is left, with the reason. Takes limits::kFolderRemovalTimeout and one call
// of the file system at most.
Status remove_folder(const std::string& path);

// Whether the file system is local, so that its calls return.
bool is_local_folder(const std::string& path);

// Runs `work` in a child process and returns its result. After `most` it kills the child without
// waiting for its end. Error: the time is over, or the child cannot be started.
Result<std::string> run_apart(const std::function<std::string()>& work, Duration most);

}  // namespace cpprun
