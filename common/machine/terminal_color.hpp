// Whether output to a descriptor has colours: --color, NO_COLOR and TERM.
#pragma once

#include <string_view>

namespace cpprun {

enum class ColorMode { Auto, Always, Never };

// "auto", "always", "never"; Auto for all other words.
ColorMode color_mode(std::string_view word);

// With Auto: `fd` is a terminal that knows colours, and NO_COLOR is unset or empty.
bool wants_color(int fd, ColorMode mode);

// Whether lines that are written again in place look right on `fd`.
bool is_live_terminal(int fd);

}  // namespace cpprun
