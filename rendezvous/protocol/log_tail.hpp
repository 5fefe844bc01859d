// The end of what one worker has written, told to the coordinator while somebody who may reads it
// in the dashboard, and only then. No decision hangs on it.
//
// A coordinator asks (`log_tail_request`) agents that said at registration that they understand it,
// for a few seconds at a time; the agent answers (`log_lines`) at most once a second, and only with
// news. docs/protocol.md, "Lines".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "common/time.hpp"

namespace cpprun::control {

// Coordinator to agent: tell the last lines of this worker, for so long.
struct LogTailRequest {
  int64_t local_rank = 0;
  Duration lasts{};
};

// Agent to coordinator: at most limits::kTailLines of each stream, each at most
// limits::kLineBytesReported. What a worker wrote, as it is.
struct LogLines {
  RoundNumber round;
  int64_t local_rank = 0;
  bool has_files = false;  // this job keeps log files of that worker; else there is nothing to tell
  std::vector<std::string> out;
  std::vector<std::string> err;
  bool operator==(const LogLines&) const = default;
};

template <class V>
void fields(V&& v, LogTailRequest& m) {
  v("local_rank", m.local_rank);
  v("lasts_ns", m.lasts);
}
template <class V>
void fields(V&& v, LogLines& m) {
  v("round", m.round);
  v("local_rank", m.local_rank);
  v("has_files", m.has_files);
  v("out", m.out);
  v("err", m.err);
}

inline const char* name_of(const LogTailRequest&) {
  return "log_tail_request";
}
inline const char* name_of(const LogLines&) {
  return "log_lines";
}

}  // namespace cpprun::control
