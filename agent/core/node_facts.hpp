// NodeFacts: what this node reports about itself when it registers and when its workers have
// stopped: the ports that others need, its newest snapshots, the result of its node check, and what
// the next coordinator must know. The daemon finds these facts out; some take it a while.
//
// Pure: no I/O, clock or randomness.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/core/effects.hpp"
#include "agent/core/node_check_schedule.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

class NodeFacts {
 public:
  // `fixed`: the facts that never change. `records`: of earlier jobs.
  NodeFacts(control::Register fixed, control::HostRecords records, bool has_node_check)
      : fixed_(std::move(fixed)), records_(std::move(records)), check_(has_node_check) {}

  // Asks the daemon for the port, the snapshots and the node check.
  void collect(Effects& effects);
  // The same when the workers have stopped. The message Stopped needs the answers.
  void collect_for_stopped(Effects& effects);
  // An answer that Stopped needs is not here yet.
  bool is_stopped_incomplete() const { return awaits_port_ || awaits_scan_ || awaits_check_; }
  // No Stopped follows. True: the scan of the snapshots was awaited.
  bool cancel_stopped();

  // The daemon's answers. True: Stopped needs this one.
  bool on_port(int64_t port);
  bool on_snapshots(std::vector<control::SnapshotName> snapshots);
  bool on_node_checked() { return std::exchange(awaits_check_, false); }

  void on_serving(int64_t port) { snapshot_port_ = port; }
  void on_serving_links(int64_t port, const std::string& secret);
  void on_control_port(int64_t port) { control_port_ = port; }
  void on_fault_permit(const control::FaultPermit& permit);
  void on_host_records(const control::HostRecords& records);
  // Only a coordinator in this process believes what the agent has read from --state-dir.
  void forget_host_records() { records_ = {}; }

  // Without what depends on the connection and the round.
  control::Register registration() const;

  const control::Register& fixed() const { return fixed_; }
  int64_t port() const { return port_; }
  const std::vector<control::SnapshotName>& snapshots() const { return snapshots_; }
  const control::HostRecords& host_records() const { return records_; }
  NodeCheckSchedule& check() { return check_; }
  const NodeCheckSchedule& check() const { return check_; }

 private:
  control::Register fixed_;
  control::HostRecords records_;  // the newest
  NodeCheckSchedule check_;
  std::vector<control::SnapshotName> snapshots_;
  int64_t port_ = 0;
  int64_t snapshot_port_ = 0;
  int64_t control_port_ = 0;
  bool awaits_port_ = false;
  bool awaits_scan_ = false;
  bool awaits_check_ = false;
};

}  // namespace cpprun::agent
