// Endpoint: host[:port] as users write it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace cpprun {

// Default ports.
inline constexpr uint16_t kRendezvousPort = 29400;  // torchrun's c10d backend
inline constexpr uint16_t kEtcdPort = 2379;         // etcd's client port

// Whether a number from a peer fits a port; 0 counts.
constexpr bool is_port(int64_t number) { return number >= 0 && number <= UINT16_MAX; }

struct Endpoint {
  std::string host;
  uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
};

// "127.0.0.1:29400", "[::1]:29400".
std::string to_string(const Endpoint& endpoint);

// Whether a numeric address is one of this host's own loopback addresses.
bool is_loopback(std::string_view address);

// The same for a host as a user writes it: also "localhost".
bool is_loopback_host(std::string_view host);

// Whether it can be a host name or a numeric address, by its characters.
bool is_host(std::string_view text);

// Parses as torchrun does: "" is localhost; "[v6]" and "[v6]:port"; a text with two or more colons
// is a bare IPv6 host; any other text is split at its last colon. The port has 1 to 5 digits and is
// below 65536. The host consists of word characters, dots, dashes and colons. `default_port` stands
// in for a missing port; if it is empty too, a missing port is an error.
Result<Endpoint> parse_endpoint(std::string_view text, std::optional<uint16_t> default_port);

}  // namespace cpprun
