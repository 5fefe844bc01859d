// RemoteAgent: one ssh process (or, on the agent's own host, a cpprun) that runs the agent of one
// host, with its standard streams. It knows nothing of the other hosts.
//
// Thread: the launcher's main thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/time.hpp"
#include "launcher/ssh/plan/hello_reader.hpp"
#include "launcher/ssh/prefixed_lines.hpp"
#include "launcher/ssh/process.hpp"

namespace cpprun::ssh {

class RemoteAgent final : public ProcessSink {
 public:
  enum class State {
    Waiting,   // not started
    Starting,  // ssh runs, or the relay is awaited; cpprun has not sent its hello
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
  RemoteAgent(const RemoteAgent&) = delete;

  // The relay on the agent's host is being started; start() follows. `via`: the host that reaches
  // this one, "": the launcher's.
  void await_relay(std::string via, Instant now);
  // `process`: runs the agent, with this object as its sink, and gets `header`.
  void start(std::unique_ptr<Process> process, const std::string& header, std::string via,
             Instant now);
  // The start failed for a reason that start_failure() then returns.
  void fail(std::string why);
  void begin();
  void send_signal(int number);
  void close_input();
  void kill();

  const std::string& host() const { return host_; }
  bool is_local() const { return is_local_; }
  State state() const { return state_; }
  bool has_ended() const { return state_ == State::Ended; }
  bool has_process() const { return process_ != nullptr && !has_ended(); }
  bool awaits_relay() const { return state_ == State::Starting && process_ == nullptr; }
  const std::string& via() const { return via_; }
  Instant started_at() const { return started_at_; }
  const std::string& failure() const { return failure_; }
  const std::string& version() const { return hello_.version(); }
  const std::string& login_text() const { return hello_.login_text(); }
  const std::string& errors() const { return errors_; }  // the end of stderr before the hello
  // After the end: 0 to 255, 128 + N after signal N.
  int exit_code() const { return exit_code_; }
  // It ended, but not by itself: the connection broke, or it was killed.
  bool is_lost() const { return is_lost_; }
  // The relay that had started it ended, and so did this one.
  bool has_lost_relay() const { return has_lost_relay_; }
  bool take_end() { return std::exchange(has_new_end_, false); }  // true once after the end

  // To poll; null: none.
  ChildProcess* child() { return has_process() ? process_->child() : nullptr; }

  // What has come since the last call.
  Text take_text() { return std::exchange(text_, {}); }
  // Shows unfinished lines whose time is over. `reads`: whether their rest is read when it comes.
  void show_parts(Instant now, bool reads);
  Instant part_deadline() const;

  void on_out(std::string_view bytes, Instant now) override;
  void on_err(std::string_view bytes, Instant now) override;
  void on_refused(std::string_view why, Instant now) override;
  void on_end(const ProcessEnd& end, Instant now) override;

 private:
  void send(std::string_view text);

  const std::string host_;
  const bool is_local_;
  State state_ = State::Waiting;
  std::unique_ptr<Process> process_;
  HelloReader hello_;
  Text text_;
  std::string via_;
  std::string failure_;
  std::string errors_;
  PrefixedLines out_lines_;
  PrefixedLines err_lines_;
  Instant started_at_;
  int exit_code_ = 0;
  bool is_lost_ = false;
  bool has_lost_relay_ = false;
  bool has_new_end_ = false;
};

}  // namespace cpprun::ssh
