// The last log lines of one worker, for the dashboard. The agent sends them only while an
// authenticated browser shows them; no decision depends on them.
//
// The coordinator sends LogTailRequest, valid for a few seconds, to agents whose registration
// announced support. The agent sends LogLines at most once a second, and only when there are new
// lines. docs/protocol.md, "Lines".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "common/time.hpp"

namespace cpprun::control {

// Coordinator to agent: send the last lines of this worker for this long.
struct LogTailRequest {
  int64_t local_rank = 0;
  Duration lasts{};
};

// Agent to coordinator: at most limits::kTailLines of each stream, each at most
// limits::kLineBytesReported, unchanged as the worker wrote them.
struct LogLines {
  RoundNumber round;
  int64_t local_rank = 0;
  bool has_files = false;  // the job keeps log files of that worker; false: no lines exist
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

inline const char* name_of(const LogTailRequest&) { return "log_tail_request"; }
inline const char* name_of(const LogLines&) { return "log_lines"; }

}  // namespace cpprun::control
