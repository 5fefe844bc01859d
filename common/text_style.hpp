// TextStyle: colours of cpprun's own texts on a terminal, and line breaks at a width. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cpprun {

inline constexpr size_t kConsoleColumns = 100;  // of cpprun's own texts on terminals

enum class TextStyle { Error, Warning, Note, Good, Strong, Faint };

// The text between the style's escape sequences; unchanged without colour.
std::string styled(TextStyle style, std::string_view text, bool has_color);

// Lines of at most `width` bytes; each newline of the text begins a new line, and a word that is
// longer than the width stays whole.
std::vector<std::string> wrapped(std::string_view text, size_t width);

// The same as one text: the first line is as it is, the others begin with `indent` blanks.
std::string indented(std::string_view text, size_t indent, size_t width);

// For lines of columns: what does not fit a line goes below its last column, which begins behind
// the last two blanks of the line's first half.
std::string hanging(std::string_view text, size_t width);

}  // namespace cpprun
