// Finds addresses of this host, and waits for a listener. Private to dist.
#pragma once

#include <chrono>
#include <string>

namespace cpprun::dist {

// This host's address on the route to `host`, by the kernel's routing table: sends no packet
// and does not resolve the own host name. Empty `host`: the default route. Empty result: no route.
std::string local_address_towards(const std::string& host);

// Waits until a connection to host:port succeeds, and returns "". After `limit` returns the last
// error, and at once when GroupSockets are shut down. Tries every few milliseconds, because c10d's
// client sleeps 0.3 s after its first refusal.
std::string wait_for_listener(const std::string& host, int port, std::chrono::milliseconds limit);

}  // namespace cpprun::dist
