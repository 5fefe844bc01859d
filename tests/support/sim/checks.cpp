#include "tests/support/sim/checks.hpp"

#include <algorithm>
#include <utility>

namespace cpprun::sim {

namespace {

std::string name_of(const RoundName& name) {
  return "round " + std::to_string(name.round.value) + " of term " +
         std::to_string(name.term.value);
}
std::string name_of(Incarnation node) { return "node " + std::to_string(node.value); }

// The stop that ends a round, not one to a node that missed it.
bool is_stop_after_loss(const control::Stop& stop) {
  return stop.cause == control::StopCause::NodeLost && stop.why != "the round is over" &&
         stop.why != "the job has continued without this node";
}

}  // namespace

bool has_no_memory(const Job& job) {
  return job.phase() == Job::Phase::Recovering ||
         (job.phase() == Job::Phase::WaitingForNodes && job.round() == RoundNumber());
}

// ---------------------------------------------------------------- workers

// Rounds of two jobs may overlap: if all agents were started again, they know nothing of earlier
// ones (docs/simulation.md).
void Checks::on_workers_live(const RoundName& round, int64_t count) {
  for (const auto& [other, live] : live_) {
    bool is_rival = are_one_job(other, round) && other != round && live > 0;
    require(!is_rival,
            "S1: workers of " + name_of(other) + " live beside those of " + name_of(round));
  }
  live_[round] += count;
  live_in_all_ += count;
}

void Checks::on_workers_gone(const RoundName& round, int64_t count) {
  auto it = live_.find(round);
  it->second -= count;
  live_in_all_ -= count;
  if (it->second == 0) live_.erase(it);
}

int64_t Checks::live_workers_of(Term term, RoundNumber round) const {
  int64_t sum = 0;
  for (const auto& [name, live] : live_) {
    if (name.round == round && root(name.term) == root(term)) sum += live;
  }
  return sum;
}

// ---------------------------------------------------------------- one job in several terms

Term Checks::root(Term term) const {
  for (auto it = continued_.find(term); it != continued_.end(); it = continued_.find(term)) {
    term = it->second;
  }
  return term;
}

// A node that was cut off at the end knows no outcome. If all others have left since, the job
// begins anew, or fails by a failure that only this node knows.
void Checks::on_continued(const Job& by, Term formed_in) {
  const Term term = by.term();
  if (term == formed_in || continued_.contains(term) || started_over_.contains(term)) return;
  require(formed_in < term, "S2: term " + std::to_string(term.value) + " continues a later one");
  const JobRecord& job = job_of(formed_in);
  const bool is_informed = informed_of_outcome_.contains(term);
  const bool is_older = RoundName{formed_in, by.round()} < job.newest;
  const bool is_lost = job.decided && (!by.has_job_result() || (is_older && !is_informed));
  if (is_lost || term < formed_in) {
    started_over_.insert(term);
  } else {
    continued_.emplace(term, formed_in);
  }
}

// ---------------------------------------------------------------- agents

void Checks::on_start(Incarnation node, const control::RankAssignment& assignment,
                      Term registered_in) {
  RoundName name{assignment.term, assignment.round};
  require(root(assignment.term) == root(registered_in),
          "S4: " + name_of(node) + " starts " + name_of(name) + " after it registered in term " +
              std::to_string(registered_in.value));
  auto [it, is_first] = started_.try_emplace(node, name);
  require(is_first || it->second.round < name.round,
          "S2: " + name_of(node) + " starts " + name_of(name) + " after " + name_of(it->second));
  it->second = name;
  auto job = jobs_.find(root(assignment.term));
  bool is_assigned = job != jobs_.end() && job->second.rounds.contains(name) &&
                     job->second.rounds.at(name).assignments.contains(node);
  require(is_assigned, "R1: " + name_of(node) + " starts a round without a rank assignment");
}

void Checks::on_finish(Term term, bool has_workers, const agent::Finish& finish) {
  using How = agent::Finish::How;
  require(!has_workers || finish.how == How::Error, "R4: an agent ends before its workers");
  JobRecord& job = job_of(term);
  if (finish.how == How::Success) {
    job.is_success_sent = true;
  } else if (finish.how == How::Failure) {
    job.is_failure_sent = true;
  }
  require(!job.is_success_sent || !job.is_failure_sent, "S5: two nodes end with opposite outcomes");
}

// Its worker lease is valid, so no other node has continued without it, and no other standby was
// named.
void Checks::on_promotion(Incarnation node, Term registered_in) {
  const auto job = jobs_.find(root(registered_in));
  if (job == jobs_.end()) return;
  const auto newest = job->second.rounds.find(job->second.newest);
  if (newest == job->second.rounds.end()) return;
  const std::optional<control::Standby>& standby = newest->second.first.standby;
  require(standby && standby->node == node, "R16: " + name_of(node) + " takes over from " +
                                                name_of(newest->first) +
                                                ", and is not its standby");
}

void Checks::on_received(Term coordinator, Term term, Incarnation from,
                         const control::AgentMessage& message) {
  if (const auto* facts = std::get_if<control::Register>(&message)) {
    nproc_[from] = facts->nproc;
    if (facts->decided) informed_of_outcome_.insert(coordinator);
  }
  term = root(term);
  if (std::holds_alternative<control::Ack>(message)) acked_.insert(from);
  if (const auto* failed = std::get_if<control::Failed>(&message)) {
    unreported_failure_.erase({from, failed->round});
  }
  if (const auto* leave = std::get_if<control::Leave>(&message)) {
    JobRecord& job = jobs_[term];
    const auto newest = job.rounds.find(job.newest);
    const bool is_of_it = newest != job.rounds.end() && newest->second.assignments.contains(from);
    if (leave->is_unusable && is_of_it) job.unusable_in = job.newest.term;
    has_unusable_node_ = has_unusable_node_ || leave->is_unusable;
  }
  const auto* stopped = std::get_if<control::Stopped>(&message);
  if (stopped == nullptr || !unreported_failure_.contains({from, stopped->round})) return;
  // A member need not repeat a failure that the coordinator sent it.
  bool is_known = false;
  for (const auto& [name, round] : jobs_[term].rounds) {
    if (name.round == stopped->round && round.was_stopped_by_failure) is_known = true;
  }
  require(is_known, "S3: " + name_of(from) + " has stopped " +
                        name_of(RoundName{term, stopped->round}) +
                        " and keeps the failure of its worker to itself");
}

// ---------------------------------------------------------------- coordinators

void Checks::on_sent(const Job* led, Incarnation to, const control::CoordinatorMessage& message) {
  if (led == nullptr) return;
  if (led->continued_term()) {
    on_continued(*led, *led->continued_term());
  }
  JobRecord& job = job_of(led->term());
  if (const auto* assignment = std::get_if<control::RankAssignment>(&message)) {
    note_exclusions(job, led->hosts());
    on_assignment(job, to, *assignment);
    // Under a leader lease a message waits until the state is written: the round may be over.
    if (led->phase() == Job::Phase::Running && led->round() == assignment->round) {
      check_places(*led, to);
    }
  } else if (const auto* stop = std::get_if<control::Stop>(&message)) {
    auto round = job.rounds.find(job.newest);
    // A node that gets the stop late and alone receives no cause.
    bool is_charge = stop->cause == control::StopCause::Failure &&
                     stop->round == job.newest.round && stop->why != "the round is over";
    if (round != job.rounds.end() && is_charge) round->second.was_stopped_by_failure = true;
    if (round != job.rounds.end() && is_stop_after_loss(*stop) && stop->round == job.newest.round &&
        job.newest.term == led->term()) {
      round->second.was_stopped_by_loss = true;
    }
  } else if (const auto* decided = std::get_if<control::JobResult>(&message)) {
    on_job_result(job, *led, to, *decided);
  } else if (std::holds_alternative<control::Bye>(message)) {
    on_bye(job, *led, to);
  } else if (const auto* records = std::get_if<control::HostRecords>(&message)) {
    note_exclusions(job, led->hosts());  // an operator may end them before the next round
    on_host_records(*records);
  }
}

void Checks::on_sent_to_ended_job(Term decided_in, Incarnation to,
                                  const control::CoordinatorMessage& message) {
  JobRecord& job = job_of(decided_in);
  if (const auto* decided = std::get_if<control::JobResult>(&message)) {
    if (!job.decided) job.decided = *decided;
    require(job.decided->is_success == decided->is_success,
            "S5: " + name_of(to) + " receives another outcome than others");
    job.informed.insert(to);
  } else if (std::holds_alternative<control::Bye>(message)) {
    require_acknowledged(job, to);
  }
}

void Checks::check_places(const Job& led, Incarnation to) {
  const auto node = led.nodes().find(to);
  if (node == led.nodes().end()) return;
  const std::string& host = node->second.id.name;
  require(!led.hosts().is_excluded(host), "excluded: " + host + " is placed in a round");
  require(!node->second.has_failed_check(), "excluded: " + host + " has failed its check");
  require(node->second.link_failure.empty(), "links: " + host + " is placed in a round");
  for (const auto& [incarnation, each] : led.nodes()) {
    const bool is_suspected = !each.link_failure.empty();
    require(!is_suspected || are_links_mended_ || bad_links_.contains(each.facts.link_port),
            "links: the link of " + each.id.name + " is good, and it is left out");
  }
}

// The exclusion of a host takes back what its failure was charged. A failed start of a program is
// not charged where hosts are excluded, also if an operator excludes its host first.
void Checks::note_exclusions(JobRecord& job, const HostLedger& hosts) {
  std::set<std::string> excluded;
  for (const auto& [host, record] : hosts.all()) {
    const bool is_by_operator = record.exclusion == control::Exclusion::Operator;
    if (record.exclusion == control::Exclusion::Policy ||
        (is_by_operator && record.failed_starts > 0))
      excluded.insert(host);
  }
  if (!std::ranges::includes(job.excluded, excluded)) job.is_pardoned = true;
  job.excluded = std::move(excluded);
}

// Only a host with failures of its own may be blamed for them. Losses are not judged here: a node
// may be lost because of the network of others.
void Checks::on_host_records(const control::HostRecords& message) {
  for (const control::HostRecord& record : message.hosts) {
    const int64_t blamed = record.failures + record.failed_starts + record.hangs;
    const auto known = failures_of_.find(record.host);
    const size_t failures = known == failures_of_.end() ? 0 : known->second.size();
    require(blamed <= static_cast<int64_t>(failures),
            "excluded: " + record.host + " is blamed for " + std::to_string(blamed) +
                " failures, and has had " + std::to_string(failures));
  }
}

void Checks::on_assignment(JobRecord& job, Incarnation to,
                           const control::RankAssignment& assignment) {
  const RoundName name{assignment.term, assignment.round};
  const std::string where = name_of(name) + ": ";
  require(name >= job.newest, "S2: " + where + "sent after a newer one");
  bool is_new = !job.rounds.contains(name);
  if (is_new) on_new_round(job, assignment);
  Round& round = job.rounds[name];
  const control::RankAssignment& first = round.first;
  require(first.world_size == assignment.world_size && first.group_size == assignment.group_size &&
              first.master_addr == assignment.master_addr &&
              first.master_port == assignment.master_port &&
              first.store_port == assignment.store_port &&
              first.restart_count == assignment.restart_count &&
              first.max_restarts == assignment.max_restarts,
          "R1: " + where + "two worlds in one round");
  auto [known, is_first] = round.assignments.try_emplace(to, assignment);
  require(is_first || (known->second.group_rank == assignment.group_rank &&
                       known->second.base_rank == assignment.base_rank),
          "R1: " + where + "the place of " + name_of(to) + " has changed");
  require(!is_first || formed_in_call_.contains(name),
          "R1: " + where + name_of(to) + " receives a round that was formed without it");
}

void Checks::on_new_round(JobRecord& job, const control::RankAssignment& assignment) {
  RoundName name{assignment.term, assignment.round};
  const std::string where = name_of(name) + ": ";
  ++rounds_formed_;
  formed_in_call_.insert(name);
  for (const auto& [other, live] : live_) {
    require(!are_one_job(other, name) || live == 0,
            "R2: " + where + "formed while workers of " + name_of(other) + " live");
  }
  int64_t used = assignment.restart_count;
  const bool is_same_term = job.newest.term == assignment.term;
  require(!is_same_term ||
              (used >= job.budget_used && (used <= job.budget_used + 1 || jobs_.size() > 1)),
          "S3: " + where + "a round costs at most one restart");
  require(used <= assignment.max_restarts, "S3: " + where + "the budget is overspent");
  // Over all jobs: one that starts over receives old failures from nodes that return late.
  require(used <= static_cast<int64_t>(failing_rounds_.size()),
          "S3: " + where + "more restarts were charged than rounds failed");
  check_budgets(job, assignment);
  if (auto last = job.rounds.find(job.newest); last != job.rounds.end()) {
    // A failure that only a dead coordinator knew is lost.
    const bool is_charged = used > job.budget_used || assignment.hang_restarts > job.hangs_used;
    require(!is_same_term || !last->second.was_stopped_by_failure || is_charged ||
                std::exchange(job.is_pardoned, false),
            "S3: " + where + "a failure was not charged");
    last->second.assignments.clear();  // checks only the newest, since there may be many nodes
  }
  job.budget_used = used;
  job.hangs_used = assignment.hang_restarts;
  job.losses_used = class_budgets(assignment).node_losses;
  job.newest = name;
  job.unusable_in = Term();
  job.rounds[name].first = assignment;
}

// Of all classes of failure. A round costs one of them at most. What only a dead coordinator knew
// does not count, and a node that returns late may know of more restarts (jobs_.size() > 1).
void Checks::check_budgets(const JobRecord& job, const control::RankAssignment& assignment) {
  const std::string where = name_of(RoundName{assignment.term, assignment.round}) + ": ";
  const control::ClassBudgets budgets = class_budgets(assignment);
  const int64_t losses = budgets.node_losses;
  const bool are_counted = budgets.max_node_losses >= 0;
  require(are_counted ? losses <= budgets.max_node_losses : losses == 0,
          "S3: " + where + "the budget of node losses is overspent");
  const int64_t max_hangs = budgets.max_hangs < 0 ? assignment.max_restarts : budgets.max_hangs;
  require(assignment.hang_restarts <= max_hangs,
          "S3: " + where + "the budget of hangs is overspent");
  if (job.newest.term != assignment.term) return;
  const int64_t cost = assignment.restart_count - job.budget_used + assignment.hang_restarts -
                       job.hangs_used + losses - job.losses_used;
  require(losses >= job.losses_used && (cost <= 1 || jobs_.size() > 1),
          "S3: " + where + "a round is charged to two budgets");
  const auto last = job.rounds.find(job.newest);
  const bool must_count =
      are_counted && last != job.rounds.end() && last->second.was_stopped_by_loss;
  require(!must_count || losses > job.losses_used, "S3: " + where + "a loss was not charged");
}

void Checks::on_job_result(JobRecord& job, const Job& led, Incarnation to,
                           const control::JobResult& decided) {
  const bool is_first = job.informed.insert(to).second;
  if (!job.decided) {
    job.decided = decided;
    job.decided_in = led.term();
  }
  // A later coordinator that no node has informed decides again; its text may differ.
  const bool is_same_coordinator = job.decided_in == led.term();
  require(job.decided->is_success == decided.is_success &&
              (!is_same_coordinator || job.decided->failure_summary == decided.failure_summary),
          "S5: " + name_of(to) + " receives another outcome than others");
  if (led.phase() == Job::Phase::Finishing) job.must_acknowledge.insert(to);
  if (!is_first) return;
  RoundName name{led.term(), led.round()};
  if (decided.is_success) {
    require(!failing_rounds_.contains(job.newest.round == name.round ? job.newest : name),
            "R8: success, though a worker of " + name_of(name) + " failed");
    require(live_workers_of(name.term, name.round) == 0,
            "R8: success, though workers of " + name_of(name) + " live");
    require(led.round() > RoundNumber(), "R8: success without a round");
    // An outcome that an elected coordinator reads from etcd (R18), or that a node reports, was
    // decided while the store lived.
    const bool is_decided_here = is_same_coordinator && led.phase() == Job::Phase::Finishing &&
                                 !informed_of_outcome_.contains(led.term());
    const bool is_storeless = job.rounds[job.newest].first.is_agent_store &&
                              job.newest.term != led.term() && is_decided_here;
    require(!is_storeless, "R13: success of a round whose store died with its coordinator");
  } else {
    require(live_workers_of(name.term, name.round) == 0,
            "R2: failure, though workers of " + name_of(name) + " live");
    bool is_portless = decided.failure_summary.find("could not open a port") != std::string::npos;
    // Of any coordinator: the message may have come before the recovery of the node's round.
    const bool is_unusable =
        has_unusable_node_ && decided.failure_summary.find("it is unusable") != std::string::npos;
    const bool is_lost = led.job_spec().max_node_losses >= 0 &&
                         decided.failure_summary.find("--max-node-losses") != std::string::npos;
    require(
        is_portless || is_unusable || is_lost || decided.is_resumable || !failing_rounds_.empty(),
        "R7: failure, though no worker failed");
  }
}

void Checks::require_acknowledged(const JobRecord& job, Incarnation to) {
  require(job.informed.contains(to) && acked_.contains(to),
          "R9: bye to " + name_of(to) + " before it has acknowledged the outcome");
}

void Checks::on_bye(JobRecord& job, const Job& led, Incarnation to) {
  require_acknowledged(job, to);
  // An agent that comes after the end leaves by itself.
  for (Incarnation member : std::exchange(job.must_acknowledge, {})) {
    auto node = led.nodes().find(member);
    bool is_here = node != led.nodes().end() && node->second.is_connected();
    require(!is_here || acked_.contains(member),
            "R9: bye before " + name_of(member) + " has acknowledged the outcome");
  }
}

// Each round is formed and sent within one call.
void Checks::after_call(const Job* led) {
  if (auto job = jobs_.find(root(led->term())); job != jobs_.end()) {
    // A node that was lost in between need not acknowledge, even if it returns before the first
    // bye.
    std::erase_if(job->second.must_acknowledge,
                  [&](Incarnation member) { return !led->nodes().contains(member); });
  }
  check_unusable(*led);
  const RoundName name{led->term(), led->round()};
  if (formed_in_call_.erase(name) == 0) return;
  const Round& round = jobs_.at(root(name.term)).rounds.at(name);
  check_ranks(round, name_of(name) + ": ");
  const auto members = static_cast<int64_t>(round.assignments.size());
  require(members >= led->job_spec().min_nodes && members <= led->job_spec().max_nodes,
          "R2: a round of " + std::to_string(members) + " nodes");
}

// No node takes the place of an unusable one, and no round waits for that.
void Checks::check_unusable(const Job& led) {
  const auto job = jobs_.find(root(led.term()));
  const bool is_over = led.phase() == Job::Phase::WaitingForNodes;
  if (job == jobs_.end() || !is_over || job->second.unusable_in != led.term()) return;
  int64_t left = 0;
  for (const auto& [incarnation, node] : led.nodes()) {
    const bool is_here = node.liveness == cpprun::Node::Liveness::Present && !node.is_draining();
    left += is_here ? 1 : 0;
  }
  require(left >= led.job_spec().min_nodes,
          "stuck: a job waits for another node in the place of an unusable one");
}

void Checks::check_ranks(const Round& round, const std::string& where) {
  std::map<int64_t, std::pair<Incarnation, const control::RankAssignment*>> by_rank;
  for (const auto& [node, assignment] : round.assignments) {
    by_rank.emplace(assignment.group_rank, std::pair(node, &assignment));
  }
  require(by_rank.size() == round.assignments.size(), where + "a group rank is there twice");
  require(static_cast<int64_t>(by_rank.size()) == round.first.group_size,
          where + "not every group rank is there");
  int64_t group_rank = 0;
  int64_t base = 0;
  for (const auto& [rank, entry] : by_rank) {
    require(rank == group_rank++, where + "group ranks have a gap");
    require(entry.second->base_rank == base, where + "ranks have a gap, or overlap");
    base += nproc_[entry.first];
  }
  require(base == round.first.world_size, where + "the world's size is not the sum of its workers");
}

}  // namespace cpprun::sim
