// Values of --redirects and --tee, and of the comma lists of the output options.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/core/config.hpp"

namespace cpprun {

struct StreamSpec {
  std::vector<StreamBits> by_rank;  // nproc entries
  int highest_rank = -1;            // that was named; -1: one value for all
};

// "0".."3" for all ranks, or "rank:value,..." where ranks not named get 0. Nothing if it is
// neither.
std::optional<StreamSpec> parse_stream_spec(std::string_view text, int nproc);

// "a,b" -> a, b; "a,,b" -> "a,b" as one. Empty entries are dropped: they would fit every line.
std::vector<std::string> parse_line_filters(std::string_view text);

}  // namespace cpprun
