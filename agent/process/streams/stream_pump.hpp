// StreamPump: copies one stream of one worker from its pipe to its log file, the console and the
// file of filtered lines. Thread: the output thread's.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/streams/console.hpp"
#include "agent/process/streams/line_splitter.hpp"
#include "agent/process/streams/output.hpp"
#include "agent/process/streams/progress_bars.hpp"
#include "common/limits/agent.hpp"
#include "common/machine/last_lines.hpp"
#include "common/time.hpp"

namespace cpprun {

class StreamPump {
 public:
  // `console` may be nullptr and outlives this object. `on_file_error(name, errno)`: a file write
  // failed and its bytes are lost.
  StreamPump(OutputStream stream, Console* console,
             std::function<void(const std::string&, int)> on_file_error);
  ~StreamPump();

  enum class Outcome { More, Nothing, End };
  Outcome read_once(char* buffer, size_t size, Instant now);

  void show_part();  // shows an unfinished line that has waited long enough
  Instant part_deadline() const { return part_deadline_; }

  const OutputStream& stream() const { return stream_; }
  int fd() const { return stream_.pipe.get(); }
  Console* console() const { return console_; }
  bool must_wait() const { return console_ != nullptr && console_->is_full(); }
  bool writes_file() const { return stream_.file != nullptr; }
  std::vector<std::string> last_lines() const { return last_lines_.lines(); }

  Instant close_at = Instant::never();  // close the stream at this time: its worker has ended
  bool is_paused = false;               // not watched while its console is full

 private:
  void on_bytes(std::string_view bytes, Instant now);
  void show(std::string_view bytes, Instant now);
  void show_text(std::string_view text,
                 void (Console::*add)(const void* writer, const std::string& prefix,
                                      std::string_view text));
  void add_duplicates(std::string_view bytes);
  void add_duplicate_line(std::string_view line);
  void write_file(LogFile& file, std::string_view bytes);

  OutputStream stream_;
  Console* console_;
  std::function<void(const std::string&, int)> on_file_error_;
  StatesToLines lines_;
  LineSplitter splitter_;
  bool is_bar_ = false;  // what the splitter holds continues a progress bar
  LineSplitter duplicates_;
  Instant part_deadline_ = Instant::never();
  LastLines last_lines_{limits::kLastLines, limits::kLastLineBytes};
};

}  // namespace cpprun
