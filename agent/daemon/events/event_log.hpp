// EventLog: the file events.jsonl of a run. Appends whole lines and nothing else; what they say is
// event_json.hpp's. A disk that is full is said once and stops nothing: lines are lost then, and
// the next one that fits begins on a line of its own. Thread: the loop's.
#pragma once

#include <cstdint>
#include <string>

namespace cpprun {

class EventLog {
 public:
  explicit EventLog(const std::string& path);  // empty: no file
  ~EventLog();
  EventLog(const EventLog&) = delete;

  // One or several lines, each with its end. At most limits::kEventsBytes in all.
  void write(const std::string& lines);
  void close();  // what comes later is lost

 private:
  void append(const std::string& lines);
  void give_up(const std::string& why);

  const std::string path_;
  int file_ = -1;
  uint64_t written_ = 0;
  bool is_torn_ = false;  // the last line in the file has no end
  bool has_said_ = false;
};

}  // namespace cpprun
