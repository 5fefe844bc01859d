#include "common/node_list.hpp"

#include <algorithm>
#include <optional>

#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

using Names = std::vector<std::string>;

Error malformed(std::string_view list, const std::string& why) {
  return Error{ErrorKind::BadValue, "'" + text::one_line(list, limits::kShownListBytes) +
                                        "' is no list of nodes: " + why};
}

Error too_many(std::string_view list) {
  return malformed(list, "it names more than " + std::to_string(limits::kNodesPerJob) + " nodes");
}

// Unlike text::parse_int, without white space and signs.
std::optional<int64_t> digits(std::string_view token) {
  constexpr size_t kDigits = 18;  // fits 64 bits
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (token.empty() || token.size() > kDigits || !std::ranges::all_of(token, is_digit)) return {};
  return text::parse_int(token);
}

std::string padded(int64_t number, size_t width) {
  std::string out = std::to_string(number);
  if (out.size() < width) out.insert(0, width - out.size(), '0');
  return out;
}

// One name with its brackets: "a[1-2]b[3,5]".
class NamePattern {
 public:
  NamePattern(std::string_view list, std::string_view pattern) : list_(list), rest_(pattern) {}

  Result<Names> expand() {
    names_ = {""};
    while (!rest_.empty()) {
      const size_t open = rest_.find('[');
      const std::string_view plain = rest_.substr(0, open);
      if (Status status = append(plain); !status) return status.error();
      if (open == std::string_view::npos) break;
      const size_t close = rest_.find(']', open);
      if (close == std::string_view::npos) return malformed(list_, "a [ has no ]");
      if (Status status = append_ranges(rest_.substr(open + 1, close - open - 1)); !status)
        return status.error();
      rest_.remove_prefix(close + 1);
    }
    return std::move(names_);
  }

 private:
  Status append(std::string_view plain) {
    for (char c : plain) {
      const bool is_name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
      if (!is_name) return malformed(list_, "a name holds a character that no host name has");
    }
    for (std::string& name : names_) name += plain;
    return {};
  }

  Status append_ranges(std::string_view ranges) {
    Names numbers;
    for (const std::string& range : text::split(ranges, ',')) {
      if (Status status = add_range(range, numbers); !status) return status;
    }
    if (names_.size() * numbers.size() > limits::kNodesPerJob) return too_many(list_);
    Names longer;
    for (const std::string& name : names_) {
      for (const std::string& number : numbers) longer.push_back(name + number);
    }
    names_ = std::move(longer);
    return {};
  }

  Status add_range(const std::string& range, Names& numbers) const {
    const size_t dash = range.find('-');
    const std::string low_text = range.substr(0, dash);
    const std::optional<int64_t> low = digits(low_text);
    const std::optional<int64_t> high =
        dash == std::string::npos ? low : digits(range.substr(dash + 1));
    if (!low || !high || *low > *high)
      return malformed(list_, "brackets hold numbers and ranges such as 1-3,7");
    // As a difference: the sum of a number and the limit could overflow.
    if (*high - *low >= limits::kNodesPerJob) return too_many(list_);
    for (int64_t n = *low; n <= *high; ++n) numbers.push_back(padded(n, low_text.size()));
    if (numbers.size() > limits::kNodesPerJob) return too_many(list_);
    return {};
  }

  std::string_view list_;
  std::string_view rest_;
  Names names_;
};

// Splits at the commas outside of brackets.
std::vector<std::string_view> split_patterns(std::string_view list) {
  std::vector<std::string_view> patterns;
  size_t begin = 0;
  bool is_inside = false;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') is_inside = true;
    if (list[i] == ']') is_inside = false;
    if (list[i] != ',' || is_inside) continue;
    patterns.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  patterns.push_back(list.substr(begin));
  return patterns;
}

}  // namespace

Result<std::vector<std::string>> expand_node_list(std::string_view list) {
  if (list.size() > limits::kNodeListBytes) return malformed(list, "it is too long");
  Names names;
  for (const std::string_view pattern : split_patterns(list)) {
    if (pattern.empty()) return malformed(list, "a name is empty");
    Result<Names> some = NamePattern(list, pattern).expand();
    if (!some) return some.error();
    names.insert(names.end(), some->begin(), some->end());
    if (names.size() > limits::kNodesPerJob) return too_many(list);
  }
  return names;
}

}  // namespace cpprun
