// The last lines of a text or of a file, such as the output of a worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace cpprun {

// The offset of the last `lines` lines; an incomplete last line counts.
size_t last_lines_at(std::string_view text, int64_t lines);

// The last lines of a stream: of each its beginning, so that a long line does not displace the
// others. An incomplete last line counts. Of a line with states of a progress bar the last state
// counts.
class LastLines {
 public:
  LastLines(size_t count, size_t line_bytes) : count_(count), line_bytes_(line_bytes) {}

  void feed(std::string_view bytes);
  std::vector<std::string> lines() const;

 private:
  void add_to_line(std::string_view bytes);
  void end_line();

  size_t count_;
  size_t line_bytes_;
  std::deque<std::string> lines_;  // complete ones
  std::string line_;               // the beginning of the incomplete one
  bool has_line_ = false;
  bool has_return_ = false;  // a \r came last: the line ends, or begins anew
};

// The last lines within the last `bytes` bytes of a file, oldest first; empty if it is no regular
// file that can be read. Blocks on its file system.
std::vector<std::string> read_last_lines(const std::string& path, size_t bytes, LastLines last);

}  // namespace cpprun
