// What agents say to each other when one fetches a snapshot from another: a line each way, then the
// bytes of a file. Pure; docs/protocol.md, "Snapshots between agents".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::snapshot_protocol {

inline constexpr size_t kLineBytes = 1024;  // with its end; longer ones are no line of ours

struct Request {
  std::string secret;  // the round's; never empty
  control::SnapshotName snapshot;
  std::string file;  // manifest.json, or a name that it holds
};

struct Answer {
  enum class Kind {
    Bytes,   // `bytes` of the file follow
    Busy,    // too many are served: ask again
    Secret,  // not this round's secret, which may be about to come: ask again
    No,      // asking again is of no use
  };
  Kind kind = Kind::No;
  uint64_t bytes = 0;
  std::string why{};  // no bytes follow, for people; on the wire it goes with No alone
};

// Lines with their end.
std::string encode(const Request& request);
std::string encode(const Answer& answer);

// Lines without their end; they may be hostile. Error (Protocol): it is no such line.
Result<Request> decode_request(std::string_view line);
Result<Answer> decode_answer(std::string_view line);

}  // namespace cpprun::snapshot_protocol
