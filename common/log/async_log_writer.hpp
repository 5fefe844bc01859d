// AsyncLogWriter: text for a console that nobody may read just now. It waits here up to a limit,
// and whoever says it does not wait: an agent that hangs in its log misses its pings.
//
// Thread-safe. A thread of its own writes what waits, and there is one only while something does.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "common/machine/nonblocking_output.hpp"
#include "common/time.hpp"

namespace cpprun::log {

class AsyncLogWriter {
 public:
  // Must live as long as the process: its thread is never joined.
  explicit AsyncLogWriter(int fd) : output_(fd) {}

  // What does not fit any more is left out, and counted where there is room again.
  void write(std::string_view text);
  // Until all is written, or for `most`, after which what waits is given up.
  void finish(std::optional<Duration> most);

 private:
  bool write_out();  // false: nobody reads now
  void start_thread();
  void wait_for_reader();

  std::mutex mutex_;
  std::condition_variable written_;
  NonblockingOutput output_;
  std::string waiting_;
  size_t lost_ = 0;  // texts
  bool has_thread_ = false;
};

}  // namespace cpprun::log
