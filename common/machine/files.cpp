#include "common/machine/files.hpp"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <fstream>

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

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  return static_cast<bool>(out);
}

}  // namespace cpprun
