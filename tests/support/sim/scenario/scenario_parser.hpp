// The parser of scenario scripts: patterns, durations, settings.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/time.hpp"
#include "tests/support/sim/cluster.hpp"

namespace cpprun::sim {

// "kill NODE" matches "kill b": each word in capitals matches one word, "..." at the end one or
// more. Returns the matched words, or nothing.
std::optional<std::vector<std::string>> match(std::string_view pattern,
                                              const std::vector<std::string>& words);

// "250ms", "2s", "10m".
std::optional<Duration> parse_duration(std::string_view text);

// "restart", "stop", "stop resumable", "drain b", "scale 2", "exclude b", "readmit b".
std::optional<control::AdminCommand> parse_admin_command(const std::vector<std::string>& words);

// "nnodes=2:3", "lease=5s" ... of a `job` line. False: no such setting or no such value.
bool apply_setting(std::string_view setting, ClusterOptions& options);

}  // namespace cpprun::sim
