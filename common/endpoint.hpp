// host[:port] as users write it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace cpprun {

struct Endpoint {
  std::string host;
  uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
};

// "127.0.0.1:29400", "[::1]:29400".
std::string to_string(const Endpoint& endpoint);

// Parses as torchrun does: "" is localhost; "[v6]" and "[v6]:port"; a bare IPv6 literal with two or
// more colons is a host; otherwise split at the last colon; port 1 to 5 digits and < 65536; host of
// word characters, dots, dashes, colons. Without a port `default_port` is taken; if that is empty
// too, a missing port is an error.
Result<Endpoint> parse_endpoint(std::string_view text, std::optional<uint16_t> default_port);

}  // namespace cpprun
