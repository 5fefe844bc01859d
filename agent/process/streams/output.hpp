// Output: carries what workers write to log files and to our own console, in a thread of its own,
// so that a slow console or disk holds up the workers that write to it and nobody else.
//
// Whole lines on the console, exact bytes in files. Calls come from the loop's thread; events are
// called on the output thread and must hand over at once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace cpprun {

// A log file, perhaps of several streams.
struct LogFile {
  std::string name;
  UniqueFd fd;
};

// One stream of one worker.
struct OutputStream {
  int local_rank = 0;
  bool is_stderr = false;
  bool has_stdout = false;  // the worker's stdout leads here as well
  bool is_alone = false;    // no other worker writes to the console
  UniqueFd pipe;            // its read end, or a terminal's master; non-blocking
  bool is_terminal = false;
  LogFile file;  // not open: none
  bool to_console = false;
  std::string prefix;
  std::vector<std::string> duplicate_filters;
  std::shared_ptr<LogFile>
      duplicate_file;  // shared: all workers of a round write to it, the last one closes it
};

class Output {
 public:
  struct Events {
    std::function<void()> on_output_drained;             // once per finish()
    std::function<void(bool goes_on)> on_stdout_closed;  // its reader went away; once
    std::function<void(int local_rank, std::vector<std::string> lines)> on_tail;
    std::function<void()> on_resized;  // once per resize(): the terminals have the new size
  };

  // Starts the thread. An error is a lack of descriptors.
  static Result<std::unique_ptr<Output>> start(Events events);
  ~Output();  // ends it; what could not be written by now is dropped
  Output(const Output&) = delete;

  void add(std::vector<OutputStream> streams);  // those of a new round
  void on_worker_exit(int local_rank);  // its streams may stay open a little longer, not for ever
  void ask_tail(int local_rank);        // answered by on_tail: the last lines of its stderr
  void resize(int rows, int columns);   // the workers' terminals
  void finish();                        // tell when all streams have ended and all is written

 private:
  class Thread;
  explicit Output(std::unique_ptr<Thread> thread);
  std::unique_ptr<Thread> thread_;
};

}  // namespace cpprun
