// Transfer of snapshots between agents: a request line, a reply line, then the bytes of a file.
// Pure; docs/protocol.md, "Snapshots between agents".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::snapshot_protocol {

inline constexpr size_t kLineBytes = 1024;  // newline included; longer lines are errors

struct Request {
  std::string secret;  // of the round; never empty
  control::SnapshotName snapshot;
  std::string file;  // manifest.json, or a file that it lists
};

struct Answer {
  enum class Kind {
    Bytes,   // `bytes` of the file follow
    Busy,    // too many transfers: retry
    Secret,  // unknown secret; the peer may not know the round yet: retry
    No,      // a retry cannot help
  };
  Kind kind = Kind::No;
  uint64_t bytes = 0;
  std::string why{};  // reason for people; on the wire only with No
};

// With the newline.
std::string encode(const Request& request);
std::string encode(const Answer& answer);

// `line` has no newline and may be hostile. Error (Protocol): it does not decode.
Result<Request> decode_request(std::string_view line);
Result<Answer> decode_answer(std::string_view line);

}  // namespace cpprun::snapshot_protocol
