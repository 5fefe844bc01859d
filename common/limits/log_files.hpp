// Limits of `cpprunctl logs --all-nodes`: log files that a tool reads through the coordinator.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/time.hpp"

namespace cpprun::limits {

// Tools at a time. Each has at most kLogRequests replies of one frame on their way, so the
// coordinator holds at most 64 MiB for those that do not read.
inline constexpr size_t kLogReaders = 16;
inline constexpr size_t kLogRequests = 64;
// Nodes in one list; with names of 255 bytes it fits into a frame of 64 KiB. Tools ask for the next
// ones.
inline constexpr size_t kLogNodes = 128;
inline constexpr size_t kLogNodesRead = 4'096;  // by one tool

// Of one reply. With kLogParts the text fits into a frame; a text on the wire has at most 16 KiB.
inline constexpr size_t kLogReplyBytes = 40 * 1024;
inline constexpr size_t kLogPartBytes = 16 * 1024;
inline constexpr size_t kLogParts = 256;

// Of an agent: each read has a thread for the time that the file system takes.
inline constexpr size_t kLogReadsAtOnce = 8;
inline constexpr size_t kLogRounds = 64;          // whose files it finds; 64 restarts are many
inline constexpr int64_t kLogLookBack = 1 << 20;  // it searches so many bytes for the last lines
// How long an agent delays the end of a job whose logs are read, until the reader has the last
// lines. A reader that sends requests needs some milliseconds, seconds on a machine that is busy.
inline constexpr Duration kLogEndWait = std::chrono::seconds(5);
inline constexpr Duration kLogReaderActive = std::chrono::seconds(5);  // since its last request

// Of the tool.
inline constexpr Duration kLogPoll = std::chrono::milliseconds(200);  // as fast as people read
inline constexpr size_t kLogLineBytes = 1 << 20;  // a longer line is shown in parts
// A coordinator that another one replaces is back within seconds.
inline constexpr Duration kLogReconnect = std::chrono::seconds(15);
inline constexpr Duration kLogNodeAbsent = std::chrono::seconds(15);  // then a warning names it
inline constexpr Duration kLogAnswer = std::chrono::seconds(30);      // of the coordinator

}  // namespace cpprun::limits
