#include "common/machine/regular_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace cpprun {

std::optional<RegularFile> open_regular_file(const std::string& path) {
  RegularFile file{UniqueFd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)),
                   {}};
  const bool is_one =
      file.fd.is_open() && ::fstat(file.fd.get(), &file.info) == 0 && S_ISREG(file.info.st_mode);
  if (!is_one) return std::nullopt;
  return std::optional<RegularFile>(std::move(file));
}

std::string read_part(int fd, off_t from, size_t size) {
  std::string part(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(fd, part.data() + done, size - done, from + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  part.resize(done);
  return part;
}

}  // namespace cpprun
