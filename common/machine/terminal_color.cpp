#include "common/machine/terminal_color.hpp"

#include <unistd.h>

#include <cstdlib>

namespace cpprun {

ColorMode color_mode(std::string_view word) {
  if (word == "always") return ColorMode::Always;
  return word == "never" ? ColorMode::Never : ColorMode::Auto;
}

bool is_live_terminal(int fd) {
  const char* term = std::getenv("TERM");
  const bool is_dumb = term != nullptr && std::string_view(term) == "dumb";
  return ::isatty(fd) == 1 && !is_dumb;
}

// https://no-color.org: any value that is not empty turns colours off.
bool wants_color(int fd, ColorMode mode) {
  if (mode != ColorMode::Auto) return mode == ColorMode::Always;
  const char* no_color = std::getenv("NO_COLOR");
  return (no_color == nullptr || *no_color == '\0') && is_live_terminal(fd);
}

}  // namespace cpprun
