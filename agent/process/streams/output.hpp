// Output: copies the workers' output to log files and to the console in a thread of its own, so
// that a slow console or disk delays only the workers that write to it.
//
// Whole lines on the console, exact bytes in files. The loop's thread calls it. The output thread
// calls the events, which must hand over at once. It may wait for a file or a terminal for ever, so
// it is never joined, and may call an event after this object's end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace cpprun {

// An open log file; several streams may share it. The last owner closes it, which may block: no
// loop may be the last one.
struct LogFile {
  std::string name;
  UniqueFd fd;
};

// One stream of one worker.
struct OutputStream {
  int local_rank = 0;
  bool is_stderr = false;
  bool has_stdout = false;  // the worker's stdout has the same descriptor
  bool is_alone = false;    // no other worker writes to the console
  UniqueFd pipe;            // read end of the pipe, or the terminal's master; non-blocking
  bool is_terminal = false;
  std::shared_ptr<LogFile> file;  // null: none
  bool to_console = false;
  std::string prefix;
  std::vector<std::string> duplicate_filters;
  std::shared_ptr<LogFile> duplicate_file;  // all workers of a round share it; null: none
};

class OutputLoop;

class Output {
 public:
  struct Events {
    std::function<void(uint64_t round)> on_finishing;       // finish(round) has arrived
    std::function<void(uint64_t round)> on_output_drained;  // the answer to finish(round)
    std::function<void(bool continues)> on_stdout_closed;   // the reader closed it; once
    std::function<void(int local_rank, std::vector<std::string> lines)> on_tail;
    std::function<void()> on_resized;  // once per resize(), after the terminals have the new size
  };

  // Starts the thread. Error: no descriptors are left.
  static Result<std::unique_ptr<Output>> start(Events events);
  // Ends the thread and drops unwritten output. Waits for it, at most limits::kOutputEndTimeout.
  ~Output();
  Output(const Output&) = delete;

  void begin_round();                           // forgets the last lines of the round before
  void add(std::vector<OutputStream> streams);  // streams of the round
  // Its streams are closed after limits::kOutputAfterExit at the latest.
  void on_worker_exit(int local_rank);
  void ask_tail(int local_rank);       // on_tail answers with the last lines of its stderr
  void resize(int rows, int columns);  // sets the size of the workers' terminals
  // on_output_drained follows when all streams have ended, but for those of the survivors (by local
  // rank), and all output is written; before it on_finishing, unless the thread waits for a file.
  // Replaces an older round that has not been answered.
  void finish(uint64_t round, std::set<int> survivors = {});

 private:
  using Command = std::function<void(OutputLoop&)>;
  struct State;

  explicit Output(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void post(Command command);  // nullptr: the thread ends
  static void run(State& state);

  const std::shared_ptr<State> state_;  // shared with the thread
};

}  // namespace cpprun
