#include "common/machine/files.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <fstream>

#include "common/machine/clock.hpp"
#include "common/machine/unique_fd.hpp"

namespace cpprun {

std::optional<std::string> read_file(const std::string& path, size_t most) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return std::nullopt;
  std::string text;
  char piece[4096];
  while (text.size() < most) {
    const ssize_t got = ::read(file.get(), piece, std::min(sizeof piece, most - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(piece, static_cast<size_t>(got));
  }
  return text;
}

bool read_until(int fd, Instant until, size_t most, std::string& text) {
  char piece[4096];
  while (text.size() < most) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - boot_now()).count();
    if (left <= 0) return false;
    pollfd readable{fd, POLLIN, 0};
    if (::poll(&readable, 1, static_cast<int>(left)) <= 0) continue;
    const ssize_t got = ::read(fd, piece, std::min(sizeof piece, most - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(piece, static_cast<size_t>(got));
  }
  return true;
}

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  return static_cast<bool>(out);
}

}  // namespace cpprun
