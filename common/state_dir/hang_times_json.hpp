// The times that the hang detector has learned as JSON, for --state-dir. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/hang_times.hpp"
#include "common/result.hpp"

namespace cpprun {

std::string hang_times_json(const HangTimes& times);
// At most limits::kSectionsKnown of each kind.
Result<HangTimes> parse_hang_times(std::string_view text);

}  // namespace cpprun
