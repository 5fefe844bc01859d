// Addresses of this machine, and whether somebody listens on another's. Private to dist.
#pragma once

#include <chrono>
#include <string>

namespace cpprun::dist {

// The own address from which `host` is reached, by the kernel's routes: no packet is sent, and the
// own host name is never looked up. Empty host: the one of the default route. Empty result: none.
std::string local_address_towards(const std::string& host);

// Returns "" as soon as somebody accepts a connection at host:port, else the last reason why not
// when `limit` is over. Tries every few milliseconds: c10d's own client sleeps 0.3 s after its
// first refusal.
std::string wait_for_listener(const std::string& host, int port, std::chrono::milliseconds limit);

}  // namespace cpprun::dist
