// EventLog: appends lines to the events.jsonl of a run, on the I/O thread. After a failed write,
// and while the file system does not answer, it drops the lines that do not fit, counts them, and
// logs one warning; the next line that fits begins on a line of its own.
//
// Thread: the loop's. Owner: the event recorder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/thread/io_thread.hpp"

namespace cpprun {

class EventLog {
 public:
  // Opens the file at once. `path` empty: no file. `io` outlives this object.
  EventLog(const std::string& path, IoThread& io);
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

  void give_up(const std::string& why);

  const std::string path_;
  IoThread& io_;
  std::shared_ptr<File> file_;  // shared with the I/O thread; null: there is no file
  uint64_t accepted_ = 0;       // bytes
  size_t dropped_ = 0;          // calls of write()
  bool has_said_ = false;
};

}  // namespace cpprun
