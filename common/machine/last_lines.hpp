// The last lines of a text or of a file, such as the output of a worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cpprun {

// The offset of the last `lines` lines; an incomplete last line counts.
size_t last_lines_at(std::string_view text, int64_t lines);

// The last `count` lines of `tail`, oldest first, without line ends.
std::vector<std::string> split_last_lines(std::string_view tail, size_t count);

// The last `count` lines within the last `bytes` bytes of a file, oldest first; empty if it is no
// regular file that can be read. Blocks on its file system.
std::vector<std::string> read_last_lines(const std::string& path, size_t count, size_t bytes);

}  // namespace cpprun
