// The notice of a failed job: the failure summary as JSON, sent to the URL of --notify-url-file or
// CPPRUN_NOTIFY_URL.
#pragma once

#include <string>

#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// Sends `json` to `url`; nothing if either is "". Waits at most limits::kNoticeTimeout; for the end
// of a run, when no loop runs any more. Logs a warning if the notice could not be sent. One agent
// of a job calls it.
void send_failure_notice(const std::string& url, const std::string& json);

// Whether the agent of this node sends what the job sends once: it hosts the coordinator now
// (`hosts`), or hosted that of its newest round, or, if no agent did, it has the first workers.
bool sends_for_job(bool hosts, const control::RankAssignment& newest);

}  // namespace cpprun
