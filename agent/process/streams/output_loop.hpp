// OutputLoop: the state and the epoll loop of the output thread. No locks: only that thread uses
// it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/process/streams/console.hpp"
#include "agent/process/streams/output.hpp"
#include "agent/process/streams/stream_pump.hpp"
#include "common/limits/agent.hpp"

namespace cpprun {

class OutputLoop {
 public:
  OutputLoop(const Output::Events& events, UniqueFd epoll);

  // Waits for one event or deadline and handles it. True: `wake_fd` is readable.
  bool wait_and_work(int wake_fd);

  void begin_round() { tails_.clear(); }
  void add(std::vector<OutputStream> streams);
  void on_worker_exit(int local_rank);
  void send_tail(int local_rank);
  void resize(int rows, int columns);
  void finish(uint64_t round, const std::set<int>& survivors);
  void settle();  // writes without blocking; reports when all is written

 private:
  struct ConsoleState {
    std::unique_ptr<Console> console;
    bool is_watched = false;  // blocked: epoll waits for room
    bool was_full = false;
  };
  using Pumps = std::map<uint64_t, std::unique_ptr<StreamPump>>;

  void watch(int fd, uint64_t key, uint32_t events);
  void unwatch(int fd);
  int timeout(Instant now) const;
  StreamPump::Outcome read_once(StreamPump& pump, Instant now);
  void on_readable(Pumps::iterator pump, Instant now);
  Pumps::iterator close(Pumps::iterator pump);
  void on_time(Instant now);
  void drain_late(StreamPump& pump, Instant now);
  bool has_ended() const;
  void flush(ConsoleState& state, uint64_t key);
  void pause_or_resume(ConsoleState& state);
  void on_console_closed(const ConsoleState& state);
  void on_file_error(const std::string& name, int error);

  Console* console_of(const OutputStream& stream);

  const Output::Events& events_;
  UniqueFd epoll_;
  int wake_fd_ = -1;
  // Not zeroed: a start would touch its 64 pages for nothing.
  const std::unique_ptr<char[]> buffer_ =
      std::make_unique_for_overwrite<char[]>(limits::kOutputBufferBytes);
  ConsoleState out_;
  ConsoleState err_;  // no console where stdout and stderr are one place
  Pumps pumps_;
  std::map<int, std::vector<std::string>> tails_;  // last lines of streams that have ended
  uint64_t next_key_ = 16;                         // smaller keys are fixed ones
  std::optional<uint64_t> finishing_;              // the round whose output must be written
  std::set<int> survivors_;  // local ranks whose streams finishing_ leaves out
  bool is_file_error_reported_ = false;
};

}  // namespace cpprun
