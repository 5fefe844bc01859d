// RelayServer: `cpprun --ssh-relay`, which --hosts with --ssh-tree runs on a host that reaches
// others. It starts the host's own agent and ssh processes to other hosts, as the launcher asks by
// frames (launcher/ssh/plan/relay_frames.hpp) on stdin, and passes their streams on. It knows
// nothing of the job.
//
// If stdin ends, the launcher is gone: the server closes the stdin of its host's agent, which then
// acts as on SIGTERM, kills the ssh processes, so that the agents behind them do the same, and ends
// when all processes have. A signal that ends programs does the same.
//
// Thread: the main thread, which polls.
#pragma once

#include <poll.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/spawn/spawn.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "launcher/ssh/child_process.hpp"
#include "launcher/ssh/merged_output.hpp"
#include "launcher/ssh/plan/relay_frames.hpp"

namespace cpprun::ssh {

class RelayServer {
 public:
  static bool is_asked_for(const std::vector<std::string>& args) {
    return args.size() == 1 && args.front() == kRelayArgument;
  }

  // `signals`: delivers the signals that end programs. `environment`: of the processes.
  RelayServer(UniqueFd signals, std::vector<std::string> environment);
  ~RelayServer();
  void run();

 private:
  struct Child;
  void send(RelayFrame::Kind kind, uint32_t process, std::string_view payload = {});
  void read_input();
  void on_frame(const RelayFrame& frame);
  void start(const RelayFrame& frame);
  void finish();
  void step();

  const UniqueFd signals_;
  const std::vector<std::string> environment_;
  SpawnContext context_;
  MergedOutput out_;
  RelayFrameReader frames_;
  std::map<uint32_t, std::unique_ptr<Child>> children_;
  bool is_finishing_ = false;
};

// Returns the exit code.
int run_relay(std::vector<std::string> environment);

}  // namespace cpprun::ssh
