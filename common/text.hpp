// Small pure helpers on text: splitting, strict number parsing, nearest names, random-looking hex
// of given bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cpprun::text {

std::vector<std::string> split(std::string_view text, char separator);
std::string_view strip(std::string_view text);  // white space at both ends
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// Whole text must be one decimal number in range; white space around it is allowed (as Python's
// int()).
std::optional<int64_t> parse_int(std::string_view text);
// The same for a finite decimal fraction.
std::optional<double> parse_double(std::string_view text);

// The candidate with the smallest edit distance if it is close enough to be a likely typing slip,
// else "".
std::string nearest(std::string_view wrong, const std::vector<std::string>& candidates);

// At most so many bytes of it; no character of UTF-8 is cut into two.
std::string cut(std::string_view text, size_t most);

// What others said, fit for terminals and logs: colours are left out, every other control character
// but newline and tab is a "?".
std::string printable(std::string_view text);
// The same as one line of at most so many bytes.
std::string one_line(std::string_view text, size_t most);
// Newline and tab count.
bool has_control(std::string_view text);

std::string hex(std::span<const uint8_t> bytes);

// "1 worker", "2 workers".
std::string count(size_t n, std::string_view noun);

// Order in which people sort host names: runs of digits compare as numbers ("n2" < "n10").
// Negative, 0, positive.
int natural_compare(std::string_view a, std::string_view b);

}  // namespace cpprun::text
