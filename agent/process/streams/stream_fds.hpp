// Opens the log files of a round, and the descriptors of a worker's stdout and stderr according to
// its StreamRoutes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/process/streams/output.hpp"
#include "agent/process/worker_spec.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace cpprun {

struct StreamFds {
  // The worker's descriptor. 1 or 2: the agent's own, inherited; else `held` or a log file owns it
  // until the spawn.
  int child = -1;
  UniqueFd held;
  std::optional<OutputStream> ours;  // the agent's end; unset: the agent does not see the stream
};

// The open log files of a round, by name.
using LogFiles = std::map<std::string, std::shared_ptr<LogFile>>;

// Opens the files of these routes, which belong to so many workers. Blocks on their file system.
// Errors name the file.
Result<LogFiles> open_log_files(const std::vector<StreamRoute>& routes);

// Whether the agent copies any of this worker's output. `is_alone` as for open_streams().
bool passes_agent(const WorkerSpec& worker, bool is_alone);

// The file that a worker writes its stderr to by itself; "": the agent copies it, or it is dropped.
std::string own_stderr_file(const WorkerSpec& worker);

struct WorkerStreams {
  StreamFds out;
  StreamFds err;
};

// `is_alone`: no other worker of this node writes to the console. The worker then inherits the
// agent's stdout. Its stderr still goes through the agent, which keeps the last lines for the
// failure summary. Where the agent's stdout and stderr are one place, the worker gets one pipe for
// both, which keeps the order of its output. `files`: has all files of the worker's routes; must
// live until the spawn.
Result<WorkerStreams> open_streams(const WorkerSpec& worker, bool is_alone, const LogFiles& files);

// Whether `error` means that no descriptors are left.
bool is_out_of_descriptors(const Error& error);

// The error "too many open files", with the limit and the number that so many workers need.
Error descriptor_error(size_t workers);

// Opens /dev/null for each missing one of stdin, stdout and stderr. Call it before any other open:
// otherwise one of the agent's descriptors could get a standard stream's number, and workers would
// inherit it.
void fill_standard_streams();

}  // namespace cpprun
