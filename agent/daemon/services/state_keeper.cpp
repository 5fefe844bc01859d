#include "agent/daemon/services/state_keeper.hpp"

#include <utility>

#include "common/machine/clock.hpp"
#include "common/proof/hmac.hpp"
#include "common/state_dir/goodput_json.hpp"
#include "common/state_dir/hang_times_json.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"

namespace cpprun {
namespace {

using control::Exclusion;
using control::HostRecord;

constexpr size_t kSubmissionDigits = 16;  // two submissions of one run id never share them

// Fewer faults than --exclude-after allows now exclude no host. A program that could not be started
// is one fault, which may have been healed since.
void lift_exclusions(control::HostRecords& records, int64_t exclude_after) {
  for (HostRecord& record : records.hosts) {
    const bool is_held = exclude_after > 0 && record.faults() >= exclude_after;
    if (record.exclusion == Exclusion::Policy && !is_held) record.exclusion = Exclusion::None;
  }
}

}  // namespace

control::HostRecords StateKeeper::load(GoodputAccount& account, HangMonitor& hangs) {
  account_ = &account;
  hangs_ = &hangs;
  files_.load();
  load_goodput();
  load_hang_times();
  return load_hosts();
}

control::HostRecords StateKeeper::load_hosts() {
  const std::string& text = files_.text(StateFiles::Kind::Hosts);
  if (text.empty()) return {};
  Result<control::HostRecords> records = control::parse_host_records(text);
  if (!records) {
    files_.ignore(StateFiles::Kind::Hosts, records.error().text);
    return {};
  }
  lift_exclusions(*records, config_.exclude_after);
  return *records;
}

void StateKeeper::load_goodput() {
  const std::string& text = files_.text(StateFiles::Kind::Goodput);
  if (text.empty()) return;
  Result<GoodputRecord> record = parse_goodput_record(text);
  if (!record) return files_.ignore(StateFiles::Kind::Goodput, record.error().text);
  found_ = std::move(*record);
  account_->resume_from(found_);
}

void StateKeeper::load_hang_times() {
  const std::string& text = files_.text(StateFiles::Kind::HangTimes);
  if (text.empty()) return;
  Result<HangTimes> times = parse_hang_times(text);
  if (!times) return files_.ignore(StateFiles::Kind::HangTimes, times.error().text);
  kept_times_ = std::move(*times);
  hangs_->learn(kept_times_);
}

void StateKeeper::on_message(const control::CoordinatorMessage& message) {
  if (const auto* assignment = std::get_if<control::RankAssignment>(&message)) {
    on_round(*assignment);
  }
  const auto* records = std::get_if<control::HostRecords>(&message);
  if (records == nullptr || !hosts_coordinator_) return;
  files_.save(StateFiles::Kind::Hosts, control::host_records_json(*records));
}

// The job's key is secret and the same in all rounds of a submission. The agent that had written
// the file may have done so for this one: then this agent was started while the job ran.
void StateKeeper::on_round(const control::RankAssignment& assignment) {
  if (!submission_.empty() || assignment.job_key.empty()) return;
  submission_ = hmac_of(assignment.job_key, "submission").substr(0, kSubmissionDigits);
  if (found_.submission == submission_) account_->join(found_);
}

void StateKeeper::save() {
  if (account_ == nullptr || !hosts_coordinator_) return;
  save_goodput(account_->record(boot_now()));
  save_hang_times();
}

void StateKeeper::save_goodput(GoodputRecord record) {
  record.submission = submission_;
  files_.save(StateFiles::Kind::Goodput, goodput_record_json(record));
}

void StateKeeper::save_hang_times() {
  HangTimes times = hangs_->learned();
  if (times == kept_times_) return;
  kept_times_ = std::move(times);
  files_.save(StateFiles::Kind::HangTimes, hang_times_json(kept_times_));
}

// After a success no later job repeats steps of this one.
void StateKeeper::finish(bool is_success) {
  if (account_ == nullptr || !hosts_coordinator_) return;
  GoodputRecord record = account_->record(boot_now());
  if (is_success) record.best_step = -1;
  save_goodput(std::move(record));
  save_hang_times();
  files_.finish();
}

}  // namespace cpprun
