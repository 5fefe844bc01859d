#include "tests/support/sim/coordinator_checks.hpp"

#include <algorithm>
#include <utility>

namespace cpprun::sim {

namespace {

// Larger than the number of jobs of one coordinator.
constexpr int64_t kOwnTerms = 100;

std::string name_of(const control::RankAssignment& assignment) {
  return "round " + std::to_string(assignment.round.value) + " of term " +
         std::to_string(assignment.term.value);
}

}  // namespace

// ---------------------------------------------------------------- messages of agents

void CoordinatorChecks::on_message(const Job* job, const control::Hello& from,
                                   const control::AgentMessage& message) {
  const auto* facts = std::get_if<control::Register>(&message);
  const bool is_anew = facts && (!job || (job->is_over() && !job->has_led(*facts)));
  if (is_anew) start_over();
  Member& member = members_[from.node.incarnation];
  const bool is_forgotten = facts && !is_anew && !job->nodes().contains(from.node.incarnation);
  if (from.connection < member.connection && !is_forgotten) return;
  if (facts) {
    member = Member{from.connection,
                    facts->has_snapshot_dir,
                    facts->addresses.empty() ? "" : facts->addresses.front(),
                    facts->snapshots,
                    {}};
    on_register(is_anew || has_no_memory(*job), from.node.incarnation, *facts);
  } else if (const auto* stopped = std::get_if<control::Stopped>(&message)) {
    member.snapshots = stopped->snapshots;
  } else if (const auto* report = std::get_if<control::Snapshots>(&message)) {
    member.snapshots = report->snapshots;
    const auto was = formed_.find(from.node.incarnation);
    const bool is_of_now = was != formed_.end() && was->second.resume &&
                           was->second.resume->snapshot.id == report->unusable;
    if (is_of_now) unusable_.insert(report->unusable);
    if (!report->unusable.empty()) reported_unusable_.insert(report->unusable);
  } else if (const auto* request = std::get_if<control::FaultPermitRequest>(&message)) {
    member.questions.emplace_back(request->fault, request->times);
  } else if (std::holds_alternative<control::Draining>(message)) {
    leaving_.insert(from.node.incarnation);
  } else if (const auto* leave = std::get_if<control::Leave>(&message)) {
    gone_.insert(from.node.incarnation);
    if (leave->is_unusable) leaving_.insert(from.node.incarnation);
  }
}

// The state of the job before it does not count. A standby that became coordinator may lead only
// that job.
void CoordinatorChecks::start_over() {
  const bool is_standby = is_standby_ && !has_begun_;
  *this = CoordinatorChecks(*checks_, first_term_, host_, is_standby, is_standby ? job_key_ : "");
  has_begun_ = true;
}

void CoordinatorChecks::on_register(bool is_memory, Incarnation from,
                                    const control::Register& message) {
  if (message.is_draining) leaving_.insert(from);
  for (size_t i = 0; i < message.fault_counts.size(); ++i) {
    int64_t& known = fault_quota_[static_cast<int64_t>(i)];
    known = std::max(known, message.fault_counts[i]);
  }
  if (!is_memory) return;
  came_.insert(from);
  remember(from, message);
}

// Assignments that this coordinator did not form itself.
void CoordinatorChecks::remember(Incarnation from, const control::Register& message) {
  if (!message.assignment) return;
  const control::RankAssignment& assignment = *message.assignment;
  const bool is_own =
      assignment.term >= first_term_ && assignment.term.value < first_term_.value + kOwnTerms;
  if (is_own) return;
  // Agents that know nothing of the job may have formed another one with the same run id and a
  // greater term. A standby knows the key of its job and ignores the rounds of the other (R10). So
  // R13 and R14 must not compare its next round with them either.
  if (!job_key_.empty() && assignment.job_key != job_key_) return;
  const auto rank = [](const control::RankAssignment& w) { return RoundName{w.term, w.round}; };
  if (newest_ && rank(assignment) < rank(*newest_)) return;
  if (!newest_ || rank(*newest_) < rank(assignment)) {
    newest_ = assignment;
    is_failure_charged_ = is_hang_charged_ = is_loss_charged_ = has_evidence_ = false;
  }
  const bool is_witness = !assignment.standby || assignment.standby->node == from;
  has_evidence_ = has_evidence_ || (is_witness && message.has_evidence);
  is_failure_charged_ = is_failure_charged_ || message.charged == control::RestartCharge::Failure;
  is_hang_charged_ = is_hang_charged_ || message.charged == control::RestartCharge::Hang;
  is_loss_charged_ = is_loss_charged_ || message.charged == control::RestartCharge::NodeLoss;
}

void CoordinatorChecks::on_sent(Term term, Incarnation to,
                                const control::CoordinatorMessage& message) {
  if (const auto* assignment = std::get_if<control::RankAssignment>(&message)) {
    // A node that missed its assignment gets it again, also one of an earlier coordinator.
    if (assignment->term != term) return;
    check_recovered_round(*assignment);
    const bool is_known = !formed_.empty() && formed_.begin()->second.round == assignment->round;
    if (!is_known) formed_in_call_[to] = *assignment;
  } else if (std::holds_alternative<control::Registered>(message)) {
    check_continuation();
  } else if (const auto* permit = std::get_if<control::FaultPermit>(&message)) {
    on_fault_permit(members_[to], *permit);
  }
}

void CoordinatorChecks::after_call(const Job& job) {
  if (formed_in_call_.empty()) return;
  check_standby(job);
  // A node without a message has just lost its connection: then the check lacks information.
  const control::RankAssignment& assignment = formed_in_call_.begin()->second;
  if (static_cast<int64_t>(formed_in_call_.size()) == assignment.group_size) check_snapshots();
  formed_ = std::exchange(formed_in_call_, {});
}

void CoordinatorChecks::check_recovered_round(const control::RankAssignment& assignment) {
  const std::string where = name_of(assignment) + ": ";
  checks_->require(job_key_.empty() || assignment.job_key == job_key_,
                   "R10: " + where + "its coordinator was the standby of another job");
  if (!newest_) return;
  checks_->require(assignment.round > newest_->round,
                   "S2: " + where + "its number was given before");
  const int64_t failures = newest_->restart_count + (is_failure_charged_ ? 1 : 0);
  const int64_t hangs = newest_->hang_restarts + (is_hang_charged_ ? 1 : 0);
  const int64_t losses = class_budgets(*newest_).node_losses + (is_loss_charged_ ? 1 : 0);
  checks_->require(assignment.restart_count >= failures && assignment.hang_restarts >= hangs &&
                       class_budgets(assignment).node_losses >= losses,
                   "R13: " + where + "restarts that agents know of are forgotten");
  checks_->require(assignment.admin_restarts >= newest_->admin_restarts,
                   "R13: " + where + "an operator's restarts are forgotten");
}

// A job with a standby is led by it or by a coordinator that has the standby's report. A job that a
// standby has led is led by no other coordinator before that standby's death is known.
void CoordinatorChecks::check_continuation() {
  if (!newest_ || std::exchange(has_continued_, true) || is_standby_) return;
  const std::string where = "R17: continues " + name_of(*newest_);
  checks_->require(!newest_->standby || came_.contains(newest_->standby->node),
                   where + " without its standby");
  checks_->require(!newest_->is_led_by_standby || has_evidence_,
                   where + " without proof from the standby that its leader is dead");
}

// By this coordinator or by the one before it; null: there was none.
const control::RankAssignment* CoordinatorChecks::round_before() const {
  if (!formed_.empty()) return &formed_.begin()->second;
  return newest_ ? &*newest_ : nullptr;
}

void CoordinatorChecks::check_standby(const Job& job) {
  const control::RankAssignment* before = round_before();
  const std::optional<control::Standby>& now = formed_in_call_.begin()->second.standby;
  const std::string where = name_of(formed_in_call_.begin()->second) + ": ";
  if (before == nullptr) return;
  if (!before->standby) {  // it may have been lost in silence
    checks_->require(!now || !formed_.empty(), "R14: " + where + "a standby after a round without");
    return;
  }
  const Incarnation standby = before->standby->node;
  if (standby == host_) return;  // it was this process
  const auto node = job.nodes().find(standby);
  const bool is_there = node != job.nodes().end() &&
                        node->second.liveness == cpprun::Node::Liveness::Present &&
                        !node->second.is_draining();
  const bool is_free = gone_.contains(standby) || leaving_.contains(standby);
  checks_->require(!now || now->node == standby || (!is_there && is_free),
                   "R14: " + where + "another standby, though the one before has not gone");
  const bool stays =
      is_there && now;  // a standby that was lost in silence may be present, and is no standby
  checks_->require(!stays || node->second.is_connected(),
                   "R14: " + where + "formed while its standby is cut off");
  const bool is_host_going = host_ && leaving_.contains(*host_);
  checks_->require(
      !stays || !is_host_going,
      "R15: " + where + "formed by a coordinator that leaves, though its standby is there");
}

bool CoordinatorChecks::has(const Member& member, const control::SnapshotName& snapshot) const {
  return std::find(member.snapshots.begin(), member.snapshots.end(), snapshot) !=
         member.snapshots.end();
}

// The newest that every node of the round has.
std::optional<control::SnapshotName> CoordinatorChecks::newest_of_all() const {
  std::vector<const Member*> owners;
  for (const auto& [incarnation, assignment] : formed_in_call_) {
    const Member& member = members_.at(incarnation);
    if (member.has_dir) owners.push_back(&member);
  }
  std::optional<control::SnapshotName> newest;
  if (owners.empty()) return newest;
  for (const control::SnapshotName& snapshot : owners.front()->snapshots) {
    const bool is_everywhere = !reported_unusable_.contains(snapshot.id) &&
                               std::all_of(owners.begin(), owners.end(),
                                           [&](const Member* m) { return has(*m, snapshot); });
    if (is_everywhere && (!newest || newest->step < snapshot.step)) newest = snapshot;
  }
  return newest;
}

bool CoordinatorChecks::is_served(const control::ResumePoint& resume) const {
  return std::any_of(formed_in_call_.begin(), formed_in_call_.end(), [&](const auto& entry) {
    const Member& member = members_.at(entry.first);
    return member.address == resume.source_address && has(member, resume.snapshot);
  });
}

void CoordinatorChecks::check_snapshots() {
  const std::string where = "snapshots: " + name_of(formed_in_call_.begin()->second) + ": ";
  const std::optional<control::SnapshotName> newest = newest_of_all();
  std::optional<control::SnapshotName> chosen;
  for (const auto& [incarnation, assignment] : formed_in_call_) {
    const Member& member = members_.at(incarnation);
    if (!member.has_dir) continue;
    checks_->require(assignment.resume || !newest, where + "begins anew, though all have one");
    if (!assignment.resume) continue;
    const control::SnapshotName& snapshot = assignment.resume->snapshot;
    checks_->require(!chosen || *chosen == snapshot, where + "nodes begin with different ones");
    chosen = snapshot;
    checks_->require(!newest || snapshot.step >= newest->step,
                     where + "begins with an older one than all have");
    checks_->require(!unusable_.contains(snapshot.id), where + "begins with one that is unusable");
    const bool is_fetched = !assignment.resume->source_address.empty();
    checks_->require(is_fetched ? is_served(*assignment.resume) : has(member, snapshot),
                     where + "a node begins with a snapshot that no node has");
  }
}

void CoordinatorChecks::on_fault_permit(Member& member, const control::FaultPermit& message) {
  const std::string where = "faults: fault " + std::to_string(message.fault) + " ";
  if (message.is_answer) {
    const bool is_asked =
        !member.questions.empty() && member.questions.front().first == message.fault;
    checks_->require(is_asked, where + "is answered, and was not asked for next");
    if (!is_asked) return;
    const int64_t times = std::exchange(member.questions.front().second, 0);
    member.questions.erase(member.questions.begin());
    checks_->require(!message.is_permitted || message.count <= times,
                     where + "injects a fault more often than it may");
  }
  if (!message.is_permitted) return;
  int64_t& known = fault_quota_[message.fault];
  // To all nodes with one count.
  checks_->require(message.count == known || message.count == known + 1, where + "is miscounted");
  known = std::max(known, message.count);
}

}  // namespace cpprun::sim
