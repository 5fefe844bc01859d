// Who has a TCP port, for the people who read "port taken". Reads /proc: unlike its parent folder
// this one does I/O, and no core may use it.
#pragma once

#include <cstdint>
#include <string>

namespace cpprun {

// "pid 4711 (python3)" for the process that listens on `port`, as far as /proc shows it; "" if it
// does not.
std::string port_owner(uint16_t port);

// Does a process listen on `port`, in the network of this one?
bool is_served(uint16_t port);

// The same as port_owner() for a known process.
std::string describe_process(int pid);

}  // namespace cpprun
