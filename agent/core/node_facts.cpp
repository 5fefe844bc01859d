#include "agent/core/node_facts.hpp"

#include <algorithm>

#include "common/limits/faults.hpp"

namespace cpprun::agent {

void NodeFacts::collect(Effects& effects) {
  effects.push_back(ReservePort{});
  if (fixed_.has_snapshot_dir) effects.push_back(ScanSnapshots{});
  if (check_.begin()) effects.push_back(RunNodeCheck{});
}

void NodeFacts::collect_for_stopped(Effects& effects) {
  awaits_port_ = true;
  awaits_scan_ = fixed_.has_snapshot_dir;
  awaits_check_ = check_.is_on();
  collect(effects);
}

bool NodeFacts::cancel_stopped() {
  awaits_port_ = awaits_check_ = false;
  return std::exchange(awaits_scan_, false);
}

bool NodeFacts::on_port(int64_t port) {
  port_ = port;
  return std::exchange(awaits_port_, false);
}

bool NodeFacts::on_snapshots(std::vector<control::SnapshotName> snapshots) {
  snapshots_ = std::move(snapshots);
  return std::exchange(awaits_scan_, false);
}

void NodeFacts::on_serving_links(int64_t port, const std::string& secret) {
  fixed_.link_port = port;
  fixed_.link_secret = secret;
}

// Remembers the count for a later coordinator, which starts without it.
void NodeFacts::on_fault_permit(const control::FaultPermit& permit) {
  std::vector<int64_t>& counts = fixed_.fault_counts;
  const bool is_sane =
      permit.fault >= 0 && permit.fault < static_cast<int64_t>(limits::kFaultsPerPlan);
  if (!permit.is_permitted || !is_sane) return;
  const auto index = static_cast<size_t>(permit.fault);
  if (counts.size() <= index) counts.resize(index + 1);
  counts[index] = std::max(counts[index], permit.count);
}

// Only the next coordinator needs them.
void NodeFacts::on_host_records(const control::HostRecords& records) {
  if (records.revision > records_.revision) records_ = records;
}

control::Register NodeFacts::registration() const {
  control::Register facts = fixed_;
  facts.reserved_port = port_;
  facts.snapshots = snapshots_;
  facts.snapshot_port = snapshot_port_;
  facts.control_port = control_port_;
  if (records_.revision > 0) facts.host_records = records_;
  facts.node_check = check_.result();
  return facts;
}

}  // namespace cpprun::agent
