// Where a worker's stdout or stderr leads: its StreamPlan turned into open descriptors.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/process/output.hpp"
#include "agent/process/process_host.hpp"
#include "agent/process/unique_fd.hpp"
#include "common/result.hpp"

namespace cpprun {

struct StreamEnds {
  int child = -1;                    // what the worker gets; 1 or 2: ours, inherited
  UniqueFd held;                     // keeps `child` open until the spawn, unless inherited
  std::optional<OutputStream> ours;  // what the agent carries on; nothing if it sees none of it
};

// Files that several streams of a round share, by name.
using SharedLogFiles = std::map<std::string, std::shared_ptr<LogFile>>;

// `may_inherit`: no other worker writes to the console. Errors name the file, or the limit on open
// files.
Result<StreamEnds> open_stream(const WorkerSpec& worker, bool is_stderr, bool may_inherit,
                               SharedLogFiles& shared);

// "too many open files", with the limit and the number that so many workers need.
Error descriptor_error(size_t workers);

}  // namespace cpprun
