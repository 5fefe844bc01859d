// The last lines of a worker's output, from its text or from its log file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cpprun {

// The last `count` lines of `tail`, oldest first, without line ends.
std::vector<std::string> split_last_lines(std::string_view tail, size_t count);

// The last `count` lines within the last `bytes` bytes of a file, oldest first; empty if it is no
// regular file that can be read. Blocks on its file system.
std::vector<std::string> read_last_lines(const std::string& path, size_t count, size_t bytes);

}  // namespace cpprun
