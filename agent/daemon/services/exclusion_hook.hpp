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
  // `token`: CPPRUN_TOKEN of the commands (user_command.hpp). `hosts_coordinator`: as of now, this
  // process does. The references must outlive this object.
  ExclusionHook(const AgentConfig& config, std::string token, const bool& hosts_coordinator)
      : config_(config), token_(std::move(token)), hosts_coordinator_(hosts_coordinator) {}
  // Waits for the commands, at most limits::kExcludeHookEndTimeout.
  ~ExclusionHook();
  ExclusionHook(const ExclusionHook&) = delete;

  // What earlier jobs have left: these exclusions are passed on already.
  void begin(const control::HostRecords& records) { known_ = records; }
  // Of a HostRecords; other messages change nothing. Away from the coordinator it only remembers
  // them: this agent may be beside the next coordinator.
  void on_message(const control::CoordinatorMessage& message);

 private:
  // For each host that is excluded in the one and not in the other.
  void run_for_excluded(const char* action, const control::HostRecords& in,
                        const control::HostRecords& not_in);
  void run(const char* action, const control::HostRecord& host);

  const AgentConfig& config_;
  const std::string token_;
  const bool& hosts_coordinator_;
  control::HostRecords known_;
  IoThread commands_;
};

}  // namespace cpprun
