// Relay: a cpprun on another host that starts processes there for the launcher
// (launcher/ssh/relay_server.hpp), as the launcher sees it. When it ends, or the connection to it
// does, all its processes end for their sinks (ProcessEnd::is_relay_lost).
//
// Thread: the launcher's main thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/time.hpp"
#include "launcher/ssh/plan/hello_reader.hpp"
#include "launcher/ssh/plan/relay_frames.hpp"
#include "launcher/ssh/process.hpp"
#include "launcher/ssh/remote_agent.hpp"

namespace cpprun::ssh {

class Relay final : public ProcessSink {
 public:
  // `agent`: of the same host. It shows what ssh prints.
  explicit Relay(RemoteAgent& agent) : agent_(&agent) {}
  Relay(const Relay&) = delete;
  ~Relay() override;

  // The ssh process that runs the relay.
  void run(std::unique_ptr<Process> process) { process_ = std::move(process); }
  void set_agent(RemoteAgent& agent) { agent_ = &agent; }
  // Starts a process on the relay's host. Requires is_ready(). The sink must live as long as the
  // process.
  std::unique_ptr<Process> start(RelayFrame::Kind kind, const std::vector<std::string>& words,
                                 ProcessSink& sink);
  void kill() { process_->kill(); }

  bool is_ready() const { return is_ready_ && !has_ended_; }
  bool is_starting() const { return !is_ready_ && !has_ended_; }
  bool has_ended() const { return has_ended_; }
  const ProcessEnd& end() const { return end_; }  // after it
  const std::string& host() const { return agent_->host(); }
  const HelloReader& hello() const { return hello_; }
  ChildProcess* child() { return process_->child(); }

  void on_out(std::string_view bytes, Instant now) override;
  void on_err(std::string_view bytes, Instant now) override { agent_->on_err(bytes, now); }
  void on_refused(std::string_view why, Instant now) override;
  void on_end(const ProcessEnd& end, Instant now) override;

 private:
  class RelayedProcess;
  void send(RelayFrame::Kind kind, uint32_t process, std::string_view payload = {});
  void on_frame(const RelayFrame& frame, Instant now);
  void forget(uint32_t process);  // nothing follows from it

  RemoteAgent* agent_;
  std::unique_ptr<Process> process_;
  HelloReader hello_;
  RelayFrameReader frames_;
  std::map<uint32_t, RelayedProcess*> processes_;
  uint32_t last_number_ = 0;
  bool is_ready_ = false;
  bool has_ended_ = false;
  ProcessEnd end_;
};

}  // namespace cpprun::ssh
