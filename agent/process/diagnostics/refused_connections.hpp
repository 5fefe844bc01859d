// Connections to a port of this network that were refused because nobody listens there, as the
// kernel reports them when their sockets close. Nothing is polled, no connection is made, and a
// filter in the kernel lets sockets with other ports pass.
//
// Seen is what a non-blocking connect() began: torch's clients do that. A blocking connect() that
// is refused leaves no port behind. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/machine/unique_fd.hpp"

namespace cpprun {

// Readable as soon as a socket to that port closes; non-blocking. Not open where the kernel does
// not report (no sock_diag, or a sandbox that has no netlink).
UniqueFd watch_closed_sockets(uint16_t port);

// The most that one message needs.
inline constexpr size_t kClosedSocketBytes = 4096;

// Does this message tell of a connection that never came to be?
bool is_refusal(std::string_view message);

}  // namespace cpprun
