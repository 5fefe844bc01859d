// Parses the argument of `logs --since` and the timestamps in log lines. Pure, except for the
// machine's time zone. Times are microseconds since 1970 (UTC).
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>

#include "common/result.hpp"

namespace cpprun::ctl {

// A duration before `now`: 90s, 5m, 2h, 1d. Or a moment: 2026-11-22T06:14:13, with a blank for the
// T, without seconds or with a fraction of one, with Z or +01:00, else in this machine's zone. Or a
// time of day, 06:14 or 06:14:13: its last occurrence.
Result<int64_t> parse_since(std::string_view words, int64_t now);

// The first date and time (YYYY-MM-DD, T or a blank, HH:MM) near the start of a line: the format of
// logging, loguru, glog-like formats with a year and JSON loggers. Nothing if there is none.
std::optional<int64_t> stamp_of(std::string_view line);

// The offset after the last line with a timestamp before `since`: newer lines begin there. 0 if all
// timestamps are newer; nothing if no line has one.
std::optional<int64_t> behind_older(std::ifstream& file, int64_t since);

}  // namespace cpprun::ctl
