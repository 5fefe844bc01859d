// Pseudo-terminals for workers: where the agent's stdout or stderr is a terminal, the workers' are
// too, so that colours and progress bars work. In raw mode, so that output arrives byte for byte.
#pragma once

#include <optional>

#include "common/machine/unique_fd.hpp"

namespace cpprun {

struct Window {
  int rows = 0;  // 0: unknown
  int columns = 0;
};

struct Terminal {
  // The agent's end, non-blocking; read() fails with EIO after the worker has closed its end.
  UniqueFd master;
  UniqueFd slave;  // the worker's end
};

// Unset: the kernel gives none (no /dev/pts, too many); a pipe is a sufficient replacement.
std::optional<Terminal> open_terminal(Window window);

// The size of the terminal `fd`; unknown if `fd` is none.
Window window_of(int fd);
void set_window(int fd, Window window);

}  // namespace cpprun
