// AsyncLogWriter: writes text to a console without ever blocking the caller, because an agent that
// blocks on its log misses its pings. Text for a console that takes none is kept up to a limit.
//
// Thread-safe. A thread of its own writes the kept text; it exists only while there is some.
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
  // The writer must live as long as the process: its thread is never joined.
  explicit AsyncLogWriter(int fd) : output_(fd) {}

  // Drops text above the limit, and writes the number of dropped texts once there is room again.
  void write(std::string_view text);
  // Waits until all text is written; after `most` it discards the rest.
  void finish(std::optional<Duration> most);

 private:
  bool write_out();  // false: the console takes no more now
  void start_thread();
  void wait_for_reader();

  std::mutex mutex_;
  std::condition_variable written_;
  NonblockingOutput output_;
  std::string pending_;
  size_t dropped_ = 0;  // texts
  bool has_thread_ = false;
};

}  // namespace cpprun::log
