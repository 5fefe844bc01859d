// ExclusionHook: runs --exclude-hook when a host is excluded or taken in again, so that the
// cluster's scheduler can do the same. The agent beside the coordinator runs it; one command at a
// time, in the order of the changes, and at most once for each. Thread: the loop's; the commands
// run on another one.
#pragma once

#include <string>
#include <utility>

#include "agent/core/config.hpp"
#include "common/thread/io_thread.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class ExclusionHook {
 public:
  // `config` must outlive this object. `token`: CPPRUN_TOKEN of the commands (user_command.hpp).
  ExclusionHook(const AgentConfig& config, std::string token)
      : config_(config), token_(std::move(token)) {}
  // Waits for the commands, at most limits::kExcludeHookEndTimeout.
  ~ExclusionHook();
  ExclusionHook(const ExclusionHook&) = delete;

  void on_change(const control::HostRecords& before, const control::HostRecords& now);

 private:
  void run(const char* action, const control::HostRecord& host);

  const AgentConfig& config_;
  const std::string token_;
  IoThread commands_;
};

}  // namespace cpprun
