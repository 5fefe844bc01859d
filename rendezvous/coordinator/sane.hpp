// Whether what an agent says can be meant: numbers within their ranges, texts that may stand in
// lines for people. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

bool is_port(int64_t number);
bool is_short(const std::string& name);  // a name or an address

// Its version, run id and node name stand in texts for people and in log lines.
bool is_sane(const control::Hello& hello);
bool is_sane(const control::Register& message);

}  // namespace cpprun
