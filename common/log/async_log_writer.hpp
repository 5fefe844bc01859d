// AsyncLogWriter: writes text to a console or file without ever blocking the caller, because an
// agent that blocks on its log misses its pings. Text that the console does not take yet, and all
// text for a regular file, is kept up to a limit until a thread has written it.
//
// Thread-safe. The thread exists only while there is such text.
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
  void add_dropped();
  void start_thread();
  void run();
  bool wait_for_reader();
  bool write_to_file();

  std::mutex mutex_;
  std::condition_variable written_;
  NonblockingOutput output_;
  std::string pending_;
  size_t in_flight_ = 0;  // bytes that the thread is writing to a file
  size_t dropped_ = 0;    // texts
  bool has_thread_ = false;
};

}  // namespace cpprun::log
