// Options of the workers' output: folder, redirects, tee, filters, prefix. resolve_logs() reads
// them; here are the parsers of --redirects, --tee and the comma lists. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/core/config.hpp"

namespace cpprun {

struct StreamSpec {
  std::vector<StreamBits> by_rank;  // nproc entries
  int highest_rank = -1;            // highest rank named; -1: one value for all
};

// "0".."3" for all ranks, or "rank:value,...", where the other ranks get 0. Nothing if malformed.
std::optional<StreamSpec> parse_stream_spec(std::string_view text, int nproc);

// "a,b" -> a, b; "a,,b" -> "a,b" as one. Drops empty entries: they would match every line.
std::vector<std::string> parse_line_filters(std::string_view text);

}  // namespace cpprun
