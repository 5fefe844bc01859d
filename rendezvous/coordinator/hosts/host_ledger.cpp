#include "rendezvous/coordinator/hosts/host_ledger.hpp"

#include <algorithm>

#include "common/failure/failure_class.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

using control::Exclusion;
using control::HostRecord;

int64_t& counter_of(HostRecord& record, HostFault fault) {
  switch (fault) {
    case HostFault::Failure: return record.failures;
    case HostFault::FailedStart: return record.failed_starts;
    case HostFault::Hang: return record.hangs;
    case HostFault::FailedCheck: return record.failed_checks;
    case HostFault::Loss: break;
  }
  return record.losses;
}

HostFault fault_of(const RootCause& root_cause) {
  if (!root_cause.why.empty()) return HostFault::FailedStart;
  if (root_cause.end.is_hang()) return HostFault::Hang;
  return is_startup_failure(root_cause.end) ? HostFault::FailedStart : HostFault::Failure;
}

std::string text_of(const RootCause& root_cause) {
  if (!root_cause.why.empty()) return root_cause.why;
  return "rank " + std::to_string(root_cause.end.rank.value) + " " + describe_end(root_cause.end);
}

// So that a sum of all counters fits.
constexpr int64_t kRecordCountMax = INT64_MAX / 8;

bool is_record(const HostRecord& record) {
  const int64_t counts[] = {record.failures,      record.failed_starts, record.hangs,
                            record.failed_checks, record.losses,        record.slow};
  return !record.host.empty() && record.host.size() <= limits::kHostNameBytes &&
         record.reason.size() <= limits::kHostReasonBytes &&
         std::ranges::all_of(counts,
                             [](int64_t count) { return count >= 0 && count < kRecordCountMax; });
}

}  // namespace

std::string faults_text(const HostRecord& record) {
  const std::pair<int64_t, const char*> counts[] = {{record.failures, "failure"},
                                                    {record.failed_starts, "failed start"},
                                                    {record.hangs, "hang"},
                                                    {record.failed_checks, "failed check"},
                                                    {record.losses, "loss"}};
  std::vector<std::string> parts;
  for (const auto& [count, noun] : counts) {
    if (count == 0) continue;
    const bool is_loss = noun == std::string_view("loss");
    parts.push_back(is_loss && count > 1 ? std::to_string(count) + " losses"
                                         : text::count(static_cast<size_t>(count), noun));
  }
  return parts.empty() ? "no fault" : text::join(parts, ", ");
}

bool HostLedger::is_excluded(const std::string& host) const {
  const HostRecord* record = find(host);
  return record != nullptr && record->is_excluded();
}

const HostRecord* HostLedger::find(const std::string& host) const {
  const auto found = records_.find(host);
  return found == records_.end() ? nullptr : &found->second;
}

std::string HostLedger::excluded_text() const {
  std::vector<std::string> names;
  for (const auto& [host, record] : records_) {
    if (record.is_excluded()) names.push_back(host);
  }
  return text::join(names, ", ");
}

HostLedger::RoundResult HostLedger::end_round(const RootCause* root_cause, size_t size) {
  std::map<std::string, std::pair<HostFault, std::string>> faults;
  if (2 * losses_.size() <= size) {
    for (const auto& [host, why] : losses_) faults[host] = {HostFault::Loss, why};
  }
  if (root_cause != nullptr)
    faults[root_cause->node] = {fault_of(*root_cause), text_of(*root_cause)};
  for (const auto& [host, why] : fatal_starts_) faults[host] = {HostFault::FailedStart, why};
  RoundResult result;
  for (const auto& [host, fault] : faults) {
    bool is_excluded_now = count(host, fault.first, fault.second);
    HostRecord* record = record_of(host);
    if (record != nullptr && fatal_starts_.contains(host)) {
      is_excluded_now |= exclude_as(*record, Exclusion::Policy, fault.second);
    }
    if (!is_excluded_now) continue;
    result.excluded.push_back(host);
    result.is_cause_excluded |= root_cause != nullptr && root_cause->node == host;
  }
  if (!fatal_starts_.empty()) result.fatal_start = fatal_starts_.begin()->second;
  losses_.clear();
  fatal_starts_.clear();
  return result;
}

bool HostLedger::count(const std::string& host, HostFault fault, const std::string& why) {
  HostRecord* record = record_of(host);
  if (record == nullptr) return false;
  // Its agent may report the failure that led to this once more, to another coordinator.
  if (record->exclusion == Exclusion::Policy) return false;
  ++counter_of(*record, fault);
  if (!record->is_excluded()) {
    record->reason = text::one_line(why, limits::kHostReasonBytes);
  }
  on_change();
  if (!is_on() || record->faults() < exclude_after_) return false;
  return exclude_as(*record, Exclusion::Policy, faults_text(*record) + "; the last: " + why);
}

void HostLedger::note_slow(const std::string& host, const std::string& why) {
  HostRecord* record = record_of(host);
  if (record == nullptr) return;
  ++record->slow;
  if (!record->is_excluded() && record->faults() == 0) {
    record->reason = text::one_line("slow: " + why, limits::kHostReasonBytes);
  }
  on_change();
}

bool HostLedger::exclude_for(const std::string& host, const std::string& why) {
  HostRecord* record = record_of(host);
  return record != nullptr && exclude_as(*record, Exclusion::Policy, why);
}

bool HostLedger::exclude(const std::string& host, const std::string& why) {
  HostRecord* record = record_of(host);
  return record != nullptr && exclude_as(*record, Exclusion::Operator, why);
}

bool HostLedger::exclude_as(HostRecord& record, Exclusion by, const std::string& why) {
  if (record.is_excluded()) return false;
  record.exclusion = by;
  is_shared_ = true;
  record.reason = text::one_line(why, limits::kHostReasonBytes);
  on_change();
  return true;
}

bool HostLedger::readmit(const std::string& host) {
  if (!is_excluded(host)) return false;
  records_.erase(host);
  on_change();
  return true;
}

bool HostLedger::learn(const control::HostRecords& known) {
  if (known.revision <= revision_ || known.revision >= kRecordCountMax) return false;
  if (known.hosts.size() > limits::kHostRecords) return false;
  if (!std::ranges::all_of(known.hosts, is_record)) return false;
  revision_ = known.revision;
  records_.clear();
  for (const HostRecord& record : known.hosts) records_.emplace(record.host, record);
  has_changed_ = is_shared_ = true;
  return true;
}

control::HostRecords HostLedger::to_report() const {
  control::HostRecords all{revision_, {}};
  for (const auto& [host, record] : records_) all.hosts.push_back(record);
  return all;
}

// Where there is no space, the host with the fewest faults that is not excluded makes room.
// nullptr: all are excluded, or the name is too long to be kept.
HostRecord* HostLedger::record_of(const std::string& host) {
  if (const auto found = records_.find(host); found != records_.end()) return &found->second;
  if (host.empty() || host.size() > limits::kHostNameBytes) return nullptr;
  if (records_.size() >= limits::kHostRecords) {
    const auto weight = [](const auto& entry) {
      return std::pair(entry.second.is_excluded(), entry.second.faults());
    };
    const auto least = std::ranges::min_element(records_, {}, weight);
    if (least->second.is_excluded()) return nullptr;
    records_.erase(least);
  }
  HostRecord& record = records_[host];
  record.host = host;
  return &record;
}

void HostLedger::on_change() {
  ++revision_;
  has_changed_ = true;
}

}  // namespace cpprun
