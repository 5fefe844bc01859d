// The check of the network link between two agents (--link-check): a request line, an answer of
// the snapshot protocol, then `bytes` in this direction, then as many back. Pure; docs/protocol.md,
// "Links between agents".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace cpprun::link_protocol {

struct Request {
  std::string secret;  // of the serving agent; never empty
  int64_t bytes = 0;   // 0 to limits::kLinkCheckMiBMax
};

std::string encode(const Request& request);  // with the newline
// `line` has no newline and may be hostile. Error (Protocol): it is no request.
Result<Request> decode_request(std::string_view line);

}  // namespace cpprun::link_protocol
