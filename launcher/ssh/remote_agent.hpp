// RemoteAgent: one ssh process (or, for this machine, a cpprun) that runs the agent of one host,
// with its standard streams. It knows nothing of the other hosts.
//
// Thread: the launcher's main thread. All descriptors are non-blocking.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/process/spawn/spawn.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "launcher/ssh/prefixed_lines.hpp"

namespace cpprun::ssh {

class RemoteAgent {
 public:
  enum class State {
    Waiting,   // not started
    Starting,  // ssh runs; cpprun has not said hello
    Ready,     // cpprun waits for begin()
    Running,
    Ended,
  };
  // What the launcher shows of the streams.
  struct Text {
    std::string out;
    std::string err;
  };

  RemoteAgent(std::string host, bool is_local);
  ~RemoteAgent();  // kills the process
  RemoteAgent(const RemoteAgent&) = delete;

  // Runs `words`, and sends `header` to its standard input.
  Status start(SpawnContext& context, const std::vector<std::string>& words,
               const std::vector<std::string>& environment, std::string header, Instant now);
  // The start failed for a reason that start_failure() then tells.
  void fail(std::string why);
  void begin();
  void send_signal(int number);
  void close_input();
  void kill();

  const std::string& host() const { return host_; }
  bool is_local() const { return is_local_; }
  State state() const { return state_; }
  bool has_ended() const { return state_ == State::Ended; }
  bool has_process() const { return pid_ > 0; }
  Instant started_at() const { return started_at_; }
  const std::string& failure() const { return failure_; }
  const std::string& version() const { return version_; }  // of its hello
  const std::string& login_text() const { return login_text_; }
  const std::string& errors() const { return errors_; }  // the end of stderr before the hello
  // After the end: 0 to 255, 128 + N after signal N.
  int exit_code() const { return exit_code_; }
  // It ended, but not by itself: the connection broke, or it was killed.
  bool is_lost() const { return is_lost_; }

  // Descriptors to poll; -1: none.
  int out_fd() const { return out_.get(); }
  int err_fd() const { return err_.get(); }
  int end_fd() const { return pidfd_.get(); }
  int in_fd() const { return unsent_.empty() ? -1 : in_.get(); }

  void read_out(Instant now, Text& text);
  void read_err(Instant now, Text& text);
  void write_in();
  void on_end(Instant now, Text& text);  // end_fd() is readable
  void show_parts(Instant now, Text& text);
  Instant part_deadline() const;

 private:
  enum class Read { More, Nothing, End };
  Read read_stream(UniqueFd& fd, Instant now, Text& text);
  void on_out(std::string_view bytes, Instant now, Text& text);
  void on_err(std::string_view bytes, Instant now, Text& text);
  void send(std::string_view text);

  const std::string host_;
  const bool is_local_;
  State state_ = State::Waiting;
  int pid_ = 0;
  UniqueFd pidfd_;
  UniqueFd in_;
  UniqueFd out_;
  UniqueFd err_;
  std::string unsent_;
  std::string failure_;
  std::string version_;
  std::string received_;    // stdout before the hello
  std::string login_text_;  // the part of it that is no hello
  std::string errors_;
  PrefixedLines out_lines_;
  PrefixedLines err_lines_;
  Instant started_at_;
  int exit_code_ = 0;
  bool is_lost_ = false;
};

}  // namespace cpprun::ssh
