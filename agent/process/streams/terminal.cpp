#include "agent/process/streams/terminal.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <array>

namespace cpprun {

std::optional<Terminal> open_terminal(Window window) {
  Terminal made;
  made.master.reset(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!made.master.is_open()) return std::nullopt;
  std::array<char, 64> name{};
  if (::grantpt(made.master.get()) != 0 || ::unlockpt(made.master.get()) != 0 ||
      ::ptsname_r(made.master.get(), name.data(), name.size()) != 0) {
    return std::nullopt;
  }
  made.slave.reset(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios settings{};
  if (!made.slave.is_open() || ::tcgetattr(made.slave.get(), &settings) != 0) return std::nullopt;
  ::cfmakeraw(&settings);
  if (::tcsetattr(made.slave.get(), TCSANOW, &settings) != 0) return std::nullopt;
  if (window.rows > 0) set_window(made.master.get(), window);
  return made;
}

Window window_of(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_row, size.ws_col};
}

void set_window(int fd, Window window) {
  winsize size{};
  size.ws_row = static_cast<unsigned short>(window.rows);
  size.ws_col = static_cast<unsigned short>(window.columns);
  ::ioctl(fd, TIOCSWINSZ, &size);
}

}  // namespace cpprun
