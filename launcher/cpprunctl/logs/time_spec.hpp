// The time words of `logs --since`, and the times that lines of a log carry themselves. Pure, but
// for the machine's time zone. Times are microseconds since 1970 (UTC).
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>

#include "common/result.hpp"

namespace cpprun::ctl {

// How long before `now`: 90s, 5m, 2h, 1d. Or when: 2026-11-22T06:14:13, with a blank for the T,
// without seconds or with a fraction of one, with Z or +01:00, else in this machine's zone; 06:14
// and 06:14:13 are the last moment at which its clock showed that.
Result<int64_t> parse_since(std::string_view words, int64_t now);

// The first date and time (YYYY-MM-DD, T or a blank, HH:MM) that begins within the first bytes of
// a line: what logging, loguru, glog-like formats with a year and JSON loggers write. No date:
// none.
std::optional<int64_t> stamp_of(std::string_view line);

// Behind the last line of the file that says that it is older than `since`: there what may be newer
// begins. 0 if all lines with times are newer; nothing if no line carries one.
std::optional<int64_t> behind_older(std::ifstream& file, int64_t since);

}  // namespace cpprun::ctl
