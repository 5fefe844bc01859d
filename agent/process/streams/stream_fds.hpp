// Where a worker's stdout or stderr leads: its StreamRoute turned into open descriptors.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/process/process_host.hpp"
#include "agent/process/streams/output.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace cpprun {

struct StreamFds {
  int child = -1;                    // what the worker gets; 1 or 2: ours, inherited
  UniqueFd held;                     // keeps `child` open until the spawn, unless inherited
  std::optional<OutputStream> ours;  // what the agent carries on; nothing if it sees none of it
};

// Files that several streams of a round share, by name.
using SharedLogFiles = std::map<std::string, std::shared_ptr<LogFile>>;

// Does the agent carry any of this worker's output? `is_alone` as below.
bool passes_agent(const WorkerSpec& worker, bool is_alone);

struct WorkerStreams {
  StreamFds out;
  StreamFds err;
};

// `is_alone`: no other worker of this node writes to the console. Its stdout is then our own. Its
// stderr passes the agent, which keeps the last lines for the failure summary. Where both lead to
// one place, so does the worker's: one pipe keeps the order of what it writes. Errors name the
// file, or the limit on open files.
Result<WorkerStreams> open_streams(const WorkerSpec& worker, bool is_alone, SharedLogFiles& shared);

// "too many open files", with the limit and the number that so many workers need.
Error descriptor_error(size_t workers);

// What stands in for stdin, stdout or stderr where we were started without.

// Before anything else is opened: a descriptor of ours must never get a number that means a
// stream, or workers would inherit it as theirs.
void fill_standard_streams();

}  // namespace cpprun
