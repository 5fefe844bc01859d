// What tells a process and its machine from others: random bytes, the machine's name.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace cpprun {

// The kernel's; nobody can guess them.
std::array<uint8_t, 16> random_bytes();

// "localhost" if it has none.
std::string own_host_name();

}  // namespace cpprun
