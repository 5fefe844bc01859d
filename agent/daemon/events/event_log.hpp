// EventLog: appends lines to the events.jsonl of a run, on the I/O thread: the first at once, then
// those of limits::kEventsDelay together, because each call of that thread takes CPU from a job
// that starts. After a failed write, and while the file system does not answer, it drops the lines
// that do not fit, counts them, and logs one warning; the next line that fits begins on a line of
// its own.
//
// Thread: the loop's. Owner: the event recorder.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/loop/timer.hpp"
#include "common/thread/io_thread.hpp"

namespace cpprun {

class EventLog {
 public:
  // Opens the file at once. `path` empty: no file. `io` outlives this object.
  EventLog(boost::asio::io_context& loop, const std::string& path, IoThread& io);
  ~EventLog();
  EventLog(const EventLog&) = delete;

  // One or more lines, each with its newline. Never waits. Drops lines beyond
  // limits::kEventsBytes, and beyond limits::kEventsPendingBytes while earlier ones wait.
  void write(const std::string& lines);
  // Closes the file after the lines so far, and waits for that, at most limits::kIoEndTimeout.
  // Later lines are dropped.
  void close();

 private:
  class File;

  void write_out();
  void give_up(const std::string& why);

  const std::string path_;
  IoThread& io_;
  std::shared_ptr<File> file_;  // shared with the I/O thread; null: there is no file
  uint64_t accepted_ = 0;       // bytes
  size_t dropped_ = 0;          // calls of write()
  Timer timer_;
  bool has_warned_ = false;
};

}  // namespace cpprun
