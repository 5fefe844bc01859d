// StateKeeper: keeps in --state-dir what later jobs with the same run id continue from: the faults
// of hosts, the goodput, and the times by which the hang detector learns its limits. All agents of
// a job read them; the agent beside the coordinator writes them, the last ones of its own node.
// Thread: the loop's. Owner: the daemon.
#pragma once

#include <string>

#include "agent/daemon/services/hang_monitor.hpp"
#include "agent/daemon/services/state_files.hpp"
#include "common/goodput/goodput_account.hpp"
#include "common/hang_times.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class StateKeeper {
 public:
  // `hosts_coordinator`: as of now, this process does. The references must outlive this object.
  StateKeeper(const AgentConfig& config, IoThread& io, const bool& hosts_coordinator)
      : config_(config), hosts_coordinator_(hosts_coordinator), files_(config, io) {}

  // Before the loop runs. Lets `account`, which has begun, and `hangs` continue from what earlier
  // jobs have left, and returns their faults of hosts; revision 0: there are none. May wait:
  // state_files.hpp. Both must outlive this object.
  control::HostRecords load(GoodputAccount& account, HangMonitor& hangs);
  void on_message(const control::CoordinatorMessage& message);
  // Writes the goodput and the learned times of now. Does nothing if the coordinator is elsewhere.
  void save();
  // After the loop. May wait: state_files.hpp.
  void finish(bool is_success);

 private:
  control::HostRecords load_hosts();
  void load_goodput();
  void load_hang_times();
  void on_round(const control::RankAssignment& assignment);
  void save_goodput(GoodputRecord record);
  void save_hang_times();

  const AgentConfig& config_;
  const bool& hosts_coordinator_;
  StateFiles files_;
  GoodputAccount* account_ = nullptr;
  HangMonitor* hangs_ = nullptr;
  HangTimes kept_times_;    // in the file
  GoodputRecord found_;     // of earlier jobs
  std::string submission_;  // names this one among those of its run id; "": it had no round here
};

}  // namespace cpprun
