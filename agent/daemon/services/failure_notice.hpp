// The notice of a failed job: the failure summary as JSON, sent to the URL of --notify-url-file or
// CPPRUN_NOTIFY_URL.
#pragma once

#include <string>

#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// Sends `json`, "" for nothing, to `url`, "" for nobody. Waits at most limits::kNoticeTimeout; for
// the end of a run, when no loop runs any more. Logs a warning if the notice could not be sent.
// One agent of a job calls it.
void send_failure_notice(const std::string& url, const std::string& json);

// Whether the coordinator of the node's newest round ran there; if it ran in no agent, whether the
// node has the first workers.
bool is_of_coordinator(const control::RankAssignment& assignment);

}  // namespace cpprun
