// Kubernetes: the record of a job's success in its snapshot folder. A pod of the job that starts
// afterwards, because it waited for a machine, finds no coordinator and would wait in vain; with
// the record it ends with 0 at once. The record is named after the uid of the Job, so that a later
// Job of the same name does not see it.
//
// Both functions wait for the file system, at most limits::kJobRecordTimeout. Without the uid or a
// snapshot folder they do nothing.
#pragma once

#include "agent/core/config.hpp"

namespace cpprun {

bool has_job_succeeded(const AgentConfig& config);
void record_success(const AgentConfig& config);

}  // namespace cpprun
