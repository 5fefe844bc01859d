// Tail: the lines of a log file, from its last few on. Takes what is there now; whoever follows
// calls again. A file that is cut short is read from its beginning.
#pragma once

#include <cstdint>
#include <string>

namespace cpprun::ctl {

class Tail {
 public:
  // `path` may not be there yet. `lines`: how many of those that are there now are wanted.
  Tail(std::string path, int64_t lines);
  // From this byte on.
  static Tail from(std::string path, int64_t at);

  const std::string& path() const { return path_; }
  // Whole lines that have come since; with `takes_rest` also a last one without its end. At most
  // some 64 KiB at a time: an empty text says that there is no more now.
  std::string next(bool takes_rest);

 private:
  std::string path_;
  int64_t lines_;
  int64_t at_ = -1;   // bytes given out, and what waits in rest_; -1: not opened yet
  std::string rest_;  // the beginning of a line
};

// Where in a text its last `lines` lines begin. A last line counts without its end too. Pure.
size_t last_lines_at(const std::string& text, int64_t lines);

}  // namespace cpprun::ctl
