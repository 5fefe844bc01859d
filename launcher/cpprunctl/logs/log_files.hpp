// Which log files of a job on this machine a command is about: those of the workers that live, and,
// where times count, those of earlier rounds as far as the run folder has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/cpprunctl/jobs/job_verbs.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"

namespace cpprun::ctl {

// One stream of one worker.
struct LogFile {
  std::string path;
  int64_t rank = 0;   // in its round
  int64_t began = 0;  // when the worker was started, microseconds since 1970; 0: not known
};

// Of the workers that live, as far as `options` means them (rank, node).
std::vector<LogFile> living_files(const std::vector<LocalJob>& agents, const JobOptions& options);
// The same with those of earlier rounds before them, oldest first, which events.jsonl tells of.
std::vector<LogFile> all_files(const std::vector<LocalJob>& agents, const JobOptions& options);

// Where in a file that what is wanted begins, and how that is known.
struct LogBegin {
  enum class How {
    Nothing,    // it was last written before
    Here,       // at `at`: its worker began later, or its lines carry times
    LastLines,  // its lines carry no times: nobody knows
  };
  How how = How::Nothing;
  int64_t at = 0;       // bytes
  int64_t written = 0;  // when it was last, microseconds since 1970
};
LogBegin begin_of(const LogFile& file, int64_t since);

}  // namespace cpprun::ctl
