// Tail: reads the lines of a log file, from its last few on. next() returns what is there; a caller
// that follows the file calls it again. A truncated file is read from its beginning.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace cpprun::ctl {

class Tail {
 public:
  // The file may not exist yet. `lines`: how many of the existing lines to return.
  Tail(std::string path, int64_t lines);
  // Starts at byte `at`.
  static Tail from(std::string path, int64_t at);

  const std::string& path() const { return path_; }
  // The complete lines since the last call; with `takes_rest` also an incomplete last line. About
  // 64 KiB at most per call; empty if there is no more now.
  std::string next(bool takes_rest);

 private:
  std::string path_;
  int64_t lines_;
  int64_t at_ = -1;   // bytes consumed, rest_ included; -1: not opened yet
  std::string rest_;  // an incomplete line
};

// Up to `bytes` bytes of a file from `from` on.
std::string read_at(std::ifstream& file, int64_t from, int64_t bytes);

}  // namespace cpprun::ctl
