// ChildProcess: a process on this machine, with pipes at its standard streams.
//
// Thread: the one that spawned it, which polls. All descriptors are non-blocking.
#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/spawn/spawn.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "launcher/ssh/process.hpp"

namespace cpprun::ssh {

class ChildProcess final : public Process {
 public:
  // Runs `words`. The sink must live as long as the process.
  static Result<std::unique_ptr<ChildProcess>> start(SpawnContext& context,
                                                     const std::vector<std::string>& words,
                                                     const std::vector<std::string>& environment,
                                                     ProcessSink& sink);
  ~ChildProcess() override;
  ChildProcess(const ChildProcess&) = delete;

  void send(std::string_view bytes) override;
  void close_input() override;
  void kill() override;
  size_t unsent() const override { return unsent_.size(); }
  ChildProcess* child() override { return this; }
  bool has_ended() const { return pid_ == 0; }
  // After kill(): when on_polled() reports its end although it has not ended.
  Instant leave_at() const { return leave_at_; }

  // Appends kPolled entries, some of them empty (-1). `reads_out`, `reads_err`: whether its output
  // is wanted now.
  static constexpr size_t kPolled = 4;
  void add_polled(std::vector<pollfd>& polled, bool reads_out, bool reads_err) const;
  void on_polled(const pollfd* entries, Instant now);

 private:
  enum class Read { More, Nothing, End };
  explicit ChildProcess(ProcessSink& sink) : sink_(sink) {}
  Read read_stream(UniqueFd& fd, Instant now);
  void write_in();
  void check_end(Instant now);
  void leave_behind(Instant now);
  void close_all();

  ProcessSink& sink_;
  int pid_ = 0;
  UniqueFd pidfd_;
  UniqueFd in_;
  UniqueFd out_;
  UniqueFd err_;
  std::string unsent_;
  Instant leave_at_ = Instant::never();
};

// Waits for events, or until then.
void poll_until(std::vector<pollfd>& polled, Instant until);

}  // namespace cpprun::ssh
