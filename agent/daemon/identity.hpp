// What an agent is told from others by: random bytes, the machine's name and its clock.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace cpprun {

std::array<uint8_t, 16> random_bytes();
std::string own_host_name();

// Of CLOCK_BOOTTIME: the same text in all processes that share it, and in no others.
std::string own_clock_id();

}  // namespace cpprun
