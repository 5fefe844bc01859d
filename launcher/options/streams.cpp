#include "launcher/options/streams.hpp"

#include <algorithm>

#include "common/text.hpp"

namespace cpprun {
namespace {

std::optional<StreamBits> parse_bits(std::string_view text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return std::nullopt;
  return StreamBits{static_cast<uint8_t>(text[0] - '0')};
}

std::optional<int64_t> parse_rank(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  return text::parse_int(text);
}

}  // namespace

std::optional<StreamSpec> parse_stream_spec(std::string_view text, int nproc) {
  StreamSpec spec;
  spec.by_rank.resize(static_cast<size_t>(nproc));
  if (std::optional<StreamBits> bits = parse_bits(text)) {
    std::fill(spec.by_rank.begin(), spec.by_rank.end(), *bits);
    return spec;
  }
  for (const std::string& entry : text::split(text, ',')) {
    size_t colon = entry.find(':');
    if (colon == std::string::npos) return std::nullopt;
    std::optional<int64_t> rank = parse_rank(std::string_view(entry).substr(0, colon));
    std::optional<StreamBits> bits = parse_bits(std::string_view(entry).substr(colon + 1));
    if (!rank || !bits) return std::nullopt;
    spec.highest_rank = static_cast<int>(std::clamp<int64_t>(*rank, spec.highest_rank, INT32_MAX));
    if (*rank < nproc) spec.by_rank[static_cast<size_t>(*rank)] = *bits;
  }
  return spec;
}

std::vector<std::string> parse_line_filters(std::string_view text) {
  std::vector<std::string> filters(1);
  for (size_t i = 0; i < text.size(); ++i) {
    bool is_comma = text[i] == ',';
    bool is_double = is_comma && i + 1 < text.size() && text[i + 1] == ',';
    if (is_comma && !is_double) {
      filters.emplace_back();
      continue;
    }
    filters.back() += text[i];
    if (is_double) ++i;
  }
  std::erase(filters, "");
  return filters;
}

}  // namespace cpprun
