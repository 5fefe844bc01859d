// EventLog: appends lines to the events.jsonl of a run. After a failed write it logs one warning
// and drops the lines that do not fit; the next line that fits begins on a line of its own. Thread:
// the loop's.
#pragma once

#include <cstdint>
#include <string>

namespace cpprun {

class EventLog {
 public:
  explicit EventLog(const std::string& path);  // empty: no file
  ~EventLog();
  EventLog(const EventLog&) = delete;

  // One or more lines, each with its newline. Drops lines beyond limits::kEventsBytes.
  void write(const std::string& lines);
  void close();  // later lines are dropped

 private:
  void append(const std::string& lines);
  void give_up(const std::string& why);

  const std::string path_;
  int file_ = -1;
  uint64_t written_ = 0;
  bool is_torn_ = false;  // the last line in the file has no newline
  bool has_said_ = false;
};

}  // namespace cpprun
