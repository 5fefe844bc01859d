// Finds the process that owns a TCP port, for error messages such as "port taken". Reads /proc.
#pragma once

#include <cstdint>
#include <string>

namespace cpprun {

// "pid 4711 (python3)" for the process that listens on `port`; "" if /proc does not show it.
std::string port_owner(uint16_t port);

// Whether a process in our network namespace listens on `port`.
bool is_served(uint16_t port);

// "pid 4711 (python3)".
std::string describe_process(int pid);

}  // namespace cpprun
