// Removes a folder and what is in it, within limits: a file server may not answer, and a file
// system may keep a file that is open somewhere under another name.
#pragma once

#include <functional>
#include <string>

#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

// Error: something of it is left, and why. Takes limits::kFolderRemovalTimeout, and what one call
// of the file system takes.
Status remove_folder(const std::string& path);

// Whether its files are on this machine: calls then return.
bool is_local_folder(const std::string& path);

// Runs `work` in a process of its own, which is killed if it has not said its result within `most`;
// nobody waits for its end then. Error: it took longer, or there is no room for another process.
Result<std::string> run_apart(const std::function<std::string()>& work, Duration most);

}  // namespace cpprun
