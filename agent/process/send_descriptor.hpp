// A datagram with a descriptor beside it.
#pragma once

#include <string>

namespace cpprun {

// Sent without waiting; `descriptor` -1: none. False: the peer has gone or reads nothing.
bool send_datagram(int socket, const std::string& bytes, int descriptor = -1);

}  // namespace cpprun
