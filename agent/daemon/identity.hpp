// What an agent is told from others by: random bytes and the machine's name.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace cpprun {

std::array<uint8_t, 16> random_bytes();
std::string own_host_name();

}  // namespace cpprun
