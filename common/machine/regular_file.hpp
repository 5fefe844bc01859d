// A regular file that is open for reading, and parts of its content.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

#include "common/machine/unique_fd.hpp"

namespace cpprun {

struct RegularFile {
  UniqueFd fd;
  struct stat info;  // when it was opened
};

// Nothing: it cannot be opened, or is no regular file. Does not wait for the writer of a FIFO, but
// for the file system.
std::optional<RegularFile> open_regular_file(const std::string& path);

// So many bytes of a file from there; fewer at its end, or after an error.
std::string read_part(int fd, off_t from, size_t size);

}  // namespace cpprun
