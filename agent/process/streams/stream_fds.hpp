// Opens the descriptors of a worker's stdout and stderr according to its StreamRoutes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/process/streams/output.hpp"
#include "agent/process/worker_spec.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace cpprun {

struct StreamFds {
  int child = -1;                    // the worker's descriptor; 1 or 2: the agent's own, inherited
  UniqueFd held;                     // owns `child` until the spawn, unless inherited
  std::optional<OutputStream> ours;  // the agent's end; unset: the agent does not see the stream
};

// Files that several streams of a round share, by name.
using SharedLogFiles = std::map<std::string, std::shared_ptr<LogFile>>;

// Whether the agent copies any of this worker's output. `is_alone` as for open_streams().
bool passes_agent(const WorkerSpec& worker, bool is_alone);

struct WorkerStreams {
  StreamFds out;
  StreamFds err;
};

// `is_alone`: no other worker of this node writes to the console. The worker then inherits the
// agent's stdout. Its stderr still goes through the agent, which keeps the last lines for the
// failure summary. Where the agent's stdout and stderr are one place, the worker gets one pipe for
// both, which keeps the order of its output. Errors name the file, or the limit on open files.
Result<WorkerStreams> open_streams(const WorkerSpec& worker, bool is_alone, SharedLogFiles& shared);

// The error "too many open files", with the limit and the number that so many workers need.
Error descriptor_error(size_t workers);

// Opens /dev/null for each missing one of stdin, stdout and stderr. Call it before any other open:
// otherwise one of the agent's descriptors could get a standard stream's number, and workers would
// inherit it.
void fill_standard_streams();

}  // namespace cpprun
