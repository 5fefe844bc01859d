// The exception that ended a worker, read from what Python or the C++ runtime printed to stderr.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cpprun {

// Without the "[rank3]: " that torch puts before each line of a traceback, once the program has a
// process group, and without the bars before the lines of an exception group.
std::string_view plain_line(std::string_view line);

// Whether the line belongs to one before it, as a line of code to its frame.
bool is_indented(std::string_view line);

// The exception behind the last traceback in `lines`, with all lines of its message, none indented;
// "" if there is none. Other output may follow. A traceback with a rank is that of the exception
// that ended the program; without `is_uncaught` no other counts.
std::string python_exception(const std::vector<std::string>& lines, bool is_uncaught);

// "std::runtime_error: no GPU" of a C++ exception that nothing caught; "" if there is none.
std::string cpp_exception(const std::vector<std::string>& lines);

}  // namespace cpprun
