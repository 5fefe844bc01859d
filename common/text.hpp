// Pure helpers on text: splitting, strict number parsing, nearest names, safe text for terminals.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/time.hpp"

namespace cpprun::text {

std::vector<std::string> split(std::string_view text, char separator);
std::vector<std::string> words(std::string_view text);  // between spaces
std::string_view strip(std::string_view text);          // removes white space at both ends
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// The whole text must be one decimal number in range, with white space around it allowed, as for
// Python's int().
std::optional<int64_t> parse_int(std::string_view text);
// The same for a finite decimal fraction.
std::optional<double> parse_double(std::string_view text);

// The candidate with the smallest edit distance if it is close enough to be a likely typing
// mistake, else "".
std::string nearest(std::string_view wrong, const std::vector<std::string>& candidates);

// The first `most` bytes at most; does not split a UTF-8 character.
std::string cut(std::string_view text, size_t most);

// The text as a file name of at most `most` bytes, or as a part of one: '_' instead of slashes.
std::string file_name(std::string text, size_t most);

// The UTF-8 character at the front of a text that is not empty; one byte if that begins none.
std::string_view first_character(std::string_view text);

// Makes foreign text safe for terminals and logs: removes colours, and replaces all other control
// characters except newline and tab by "?".
std::string printable(std::string_view text);
// The same as one line of at most `most` bytes.
std::string one_line(std::string_view text, size_t most);
// Newline and tab are control characters here.
bool has_control(std::string_view text);

std::string hex(std::span<const uint8_t> bytes);

// Percent-encoding of URLs undone: "a%2Fb" becomes "a/b". A '%' without two digits stays.
std::string percent_decoded(std::string_view text);

// The value if `entry` is "NAME=value" of this name.
std::optional<std::string_view> value_of(std::string_view entry, std::string_view name);

// "12.5 s".
std::string seconds(Duration duration, int decimals = 1);

// "1 worker", "2 workers".
std::string count(size_t n, std::string_view noun);

// Compares host names as people sort them: runs of digits compare as numbers ("n2" < "n10").
// Returns a negative number, 0 or a positive number.
int natural_compare(std::string_view a, std::string_view b);

}  // namespace cpprun::text
