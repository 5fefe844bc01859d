// HostRecordService: what the agent beside the coordinator does with the records of hosts: keeps
// them in --state-dir, and runs --exclude-hook. Thread: the loop's.
#pragma once

#include <string>

#include "agent/daemon/services/exclusion_hook.hpp"
#include "agent/daemon/services/host_record_file.hpp"

namespace cpprun {

class HostRecordService {
 public:
  // `config` and `io` must outlive this object. `token`: as for ExclusionHook.
  HostRecordService(const AgentConfig& config, IoThread& io, const std::string& token)
      : file_(config, io), hook_(config, token) {}

  // As HostRecordFile::load().
  control::HostRecords load() { return known_ = file_.load(); }
  // Of a HostRecords; other messages change nothing. `is_beside`: the coordinator is in this
  // process. Other agents only keep the records: one of them may be beside the next coordinator.
  void on_message(const control::CoordinatorMessage& message, bool is_beside) {
    const auto* records = std::get_if<control::HostRecords>(&message);
    if (records == nullptr) return;
    if (is_beside) {
      file_.save(*records);
      hook_.on_change(known_, *records);
    }
    known_ = *records;
  }

 private:
  HostRecordFile file_;
  ExclusionHook hook_;
  control::HostRecords known_;
};

}  // namespace cpprun
