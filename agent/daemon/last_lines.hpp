// The end of a log file, as far as the dashboard is told of it. Blocks as the file's disk does.
#pragma once

#include <string>
#include <vector>

namespace cpprun {

// At most limits::kTailLines, newest last, each cut at limits::kLineBytesTold. None if the file
// can't be read.
std::vector<std::string> last_lines_of(const std::string& path);

}  // namespace cpprun
