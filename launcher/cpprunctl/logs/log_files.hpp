// Selects the log files of a job on this machine: those of the running workers and, for --since,
// those of earlier rounds that the run folder still holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/cpprunctl/jobs/job_commands.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"

namespace cpprun::ctl {

// One stream of one worker.
struct LogFile {
  std::string path;
  int64_t rank = 0;   // in its round
  int64_t began = 0;  // start of the worker, microseconds since 1970; 0: unknown
};

// Of the running workers that `options` selects (rank, node).
std::vector<LogFile> living_files(const std::vector<LocalJob>& agents,
                                  const JobCommandOptions& options);
// The same, preceded by earlier rounds from events.jsonl, oldest first.
std::vector<LogFile> all_files(const std::vector<LocalJob>& agents,
                               const JobCommandOptions& options);

// The position in a file at which the requested lines begin.
struct LogBegin {
  enum class How {
    Nothing,    // the file was last written before the requested time
    Here,       // at `at`: its worker began later, or its lines have timestamps
    LastLines,  // unknown: its lines have no timestamps
  };
  How how = How::Nothing;
  int64_t at = 0;       // bytes
  int64_t written = 0;  // time of the last write, microseconds since 1970
};
LogBegin begin_of(const LogFile& file, int64_t since);

}  // namespace cpprun::ctl
