// Identity of a process and its machine: random bytes, the admin token and the host name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace cpprun {

// From the kernel; fit for secrets.
std::array<uint8_t, 16> random_bytes();

// Hex digits of so many random bytes, in blocks of 16: 32 digits each.
std::string random_hex(size_t blocks = 1);

// The value of CPPRUN_ADMIN_TOKEN; "" if unset.
std::string admin_token();

// "localhost" if the machine has no name.
std::string own_host_name();

}  // namespace cpprun
