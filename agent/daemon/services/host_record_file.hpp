// HostRecordFile: keeps the faults of hosts in --state-dir, for later jobs with the same run id:
// <run id>.hosts.json ('_' instead of slashes), which the agent beside the coordinator replaces
// after each change. No error in it stops the agent. Thread: the loop's; the I/O thread writes.
#pragma once

#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "common/thread/io_thread.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// The names of the excluded ones.
std::vector<std::string> excluded_in(const control::HostRecords& records);

class HostRecordFile {
 public:
  // `config` and `io` must outlive this object.
  HostRecordFile(const AgentConfig& config, IoThread& io) : config_(config), io_(io) {}

  // What earlier jobs have left; revision 0: nothing. Waits for the file system, at most
  // limits::kJobRecordTimeout.
  control::HostRecords load();
  void save(const control::HostRecords& records);

 private:
  std::string path() const;

  const AgentConfig& config_;
  IoThread& io_;
};

}  // namespace cpprun
