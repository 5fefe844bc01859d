// Terminals for workers: where our own stdout or stderr is one, theirs are too, so that colours and
// progress bars behave. Raw: what a worker writes arrives byte for byte.
#pragma once

#include <optional>

#include "common/machine/unique_fd.hpp"

namespace cpprun {

struct Window {
  int rows = 0;  // 0: unknown
  int columns = 0;
};

struct Terminal {
  UniqueFd master;  // ours, non-blocking; reading it ends with EIO when the worker's end is closed
  UniqueFd slave;   // the worker's
};

// Nothing where none can be had (no /dev/pts, too many): a pipe does as well.
std::optional<Terminal> open_terminal(Window window);

// Of the terminal `fd`; unknown if it is none.
Window window_of(int fd);
void set_window(int fd, Window window);

}  // namespace cpprun
