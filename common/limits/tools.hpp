// Limits of what cpprunctl reads of jobs, of running ones and of those that have ended.
#pragma once

#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

inline constexpr size_t kKeptRuns = 200;  // run folders, the newest ones; each costs one small read
// Of the first and of the last part of an events file: a failure summary with its lines fits.
inline constexpr size_t kRunSummaryBytes = 256 << 10;

// --report: the run folder and the report may lie on slow network file systems.
inline constexpr Duration kReportTimeout = std::chrono::seconds(10);

// cpprunctl report: small enough for a mail, and for any browser.
inline constexpr size_t kReportBytes = 4 << 20;
inline constexpr size_t kReportEventBytes = 512 << 10;  // the end of the events file
inline constexpr size_t kReportFileBytes = 32 << 10;    // of each other file
inline constexpr size_t kReportRanks = 16;              // workers of one node with log files

}  // namespace cpprun::limits
