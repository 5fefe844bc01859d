// Reports refused connections to a port of this network namespace, from the kernel's sock_diag
// messages about closed sockets. It polls nothing and makes no connection; a kernel filter drops
// messages about other ports.
//
// It sees refusals of non-blocking connect() calls, which torch's clients use. A blocking connect()
// that is refused leaves no port in the message. The kernel's headers that it needs conflict with
// those of Asio. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/machine/unique_fd.hpp"

namespace cpprun {

// A non-blocking socket that is readable when a socket to that port has closed. Not open where the
// kernel sends no such messages (no sock_diag, or a sandbox without netlink).
UniqueFd watch_closed_sockets(uint16_t port);

// Buffer for one message.
inline constexpr size_t kClosedSocketBytes = 4096;

// Whether this message reports a connection that was never established.
bool is_refusal(std::string_view message);

}  // namespace cpprun
