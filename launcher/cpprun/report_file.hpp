// --report: the report of the job as a file, written at the end of the run. In a job of several
// nodes node rank 0 of the last round writes it; if no round was formed, the agent in whose process
// the coordinator is.
#pragma once

#include <string>

#include "agent/daemon/agent_daemon.hpp"
#include "common/result.hpp"

namespace cpprun {

// The file that the report of `path` replaces: the one that a link names. "" without a path. Error:
// no file can be written there.
Result<std::string> check_report_file(const std::string& path);

// Lets the agent write the report at its end, at most for limits::kReportTimeout: to a temporary
// file in the same folder, which then replaces `target`. Does nothing without a target.
void report_at_end(AgentDaemon& agent, const std::string& target);

}  // namespace cpprun
