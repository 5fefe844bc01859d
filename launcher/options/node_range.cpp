#include "launcher/options/node_range.hpp"

#include <string>
#include <vector>

#include "common/text.hpp"

namespace cpprun {

std::optional<std::pair<int64_t, int64_t>> parse_node_range(std::string_view text) {
  const std::vector<std::string> parts = text::split(text, ':');
  const std::optional<int64_t> min = text::parse_int(parts.front());
  const std::optional<int64_t> max = text::parse_int(parts.back());
  if (parts.size() > 2 || !min || !max || *min < 1 || *min > *max) return std::nullopt;
  return std::pair(*min, *max);
}

}  // namespace cpprun
