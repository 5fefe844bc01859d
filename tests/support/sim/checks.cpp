#include "tests/support/sim/checks.hpp"

#include <algorithm>
#include <utility>

namespace cpprun::sim {

namespace {

std::string name_of(const RoundName& name) {
  return "round " + std::to_string(name.round.value) + " of epoch " +
         std::to_string(name.epoch.value);
}
std::string name_of(Incarnation node) {
  return "node " + std::to_string(node.value);
}

}  // namespace

bool has_no_memory(const Membership& job) {
  return job.phase() == Membership::Phase::Recovering ||
         (job.phase() == Membership::Phase::Gathering && job.round() == RoundNumber());
}

// ---------------------------------------------------------------- workers

// Rounds of two jobs may overlap: agents that were all started anew know nothing of those before
// them (docs/simulation.md).
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

int64_t Checks::live_workers_of(Epoch epoch, RoundNumber round) const {
  int64_t sum = 0;
  for (const auto& [name, live] : live_) {
    if (name.round == round && root(name.epoch) == root(epoch)) sum += live;
  }
  return sum;
}

// ---------------------------------------------------------------- one job in several epochs

Epoch Checks::root(Epoch epoch) const {
  for (auto it = continued_.find(epoch); it != continued_.end(); it = continued_.find(epoch)) {
    epoch = it->second;
  }
  return epoch;
}

// Who was cut off at the end knows no outcome. If all others have left since, the job begins anew.
void Checks::on_continued(const Membership& by, Epoch formed_in) {
  const Epoch epoch = by.epoch();
  if (epoch == formed_in || continued_.contains(epoch) || begun_anew_.contains(epoch)) return;
  require(formed_in < epoch,
          "S2: epoch " + std::to_string(epoch.value) + " goes on from a later one");
  const bool is_lost = job_of(formed_in).decided && !by.is_decided();
  if (is_lost || epoch < formed_in) {
    begun_anew_.insert(epoch);
  } else {
    continued_.emplace(epoch, formed_in);
  }
}

// ---------------------------------------------------------------- agents

void Checks::on_start(Incarnation node, const control::World& world, Epoch welcomed) {
  RoundName name{world.epoch, world.round};
  require(root(world.epoch) == root(welcomed), "S4: " + name_of(node) + " starts " + name_of(name) +
                                                   " after it was welcomed to epoch " +
                                                   std::to_string(welcomed.value));
  auto [it, is_first] = started_.try_emplace(node, name);
  require(is_first || it->second.round < name.round,
          "S2: " + name_of(node) + " starts " + name_of(name) + " after " + name_of(it->second));
  it->second = name;
  auto job = jobs_.find(root(world.epoch));
  bool is_told = job != jobs_.end() && job->second.rounds.contains(name) &&
                 job->second.rounds.at(name).worlds.contains(node);
  require(is_told, "R1: " + name_of(node) + " starts a round that nobody gave to it");
}

void Checks::on_finish(Epoch epoch, bool has_workers, const agent::Finish& finish) {
  using How = agent::Finish::How;
  require(!has_workers || finish.how == How::Error, "R4: an agent ends before its workers");
  Job& job = job_of(epoch);
  if (finish.how == How::Success) {
    job.is_success_told = true;
  } else if (finish.how == How::Failure) {
    job.is_failure_told = true;
  }
  require(!job.is_success_told || !job.is_failure_told, "S5: two nodes end with opposite outcomes");
}

// Its grant holds, so nobody has gone on without it, and no other heir was named.
void Checks::on_take_over(Incarnation node, Epoch welcomed) {
  const auto job = jobs_.find(root(welcomed));
  if (job == jobs_.end()) return;
  const auto newest = job->second.rounds.find(job->second.newest);
  if (newest == job->second.rounds.end()) return;
  const std::optional<control::Heir>& heir = newest->second.first.heir;
  require(heir && heir->node == node, "R16: " + name_of(node) + " takes over from " +
                                          name_of(newest->first) + ", and is not its heir");
}

void Checks::on_heard(Epoch epoch, Incarnation from, const control::AgentMessage& message) {
  epoch = root(epoch);
  if (std::holds_alternative<control::Ack>(message)) acked_.insert(from);
  if (const auto* facts = std::get_if<control::Register>(&message)) nproc_[from] = facts->nproc;
  if (const auto* failed = std::get_if<control::Failed>(&message)) {
    unreported_.erase({from, failed->round});
  }
  if (const auto* leave = std::get_if<control::Leave>(&message)) {
    Job& job = jobs_[epoch];
    const auto newest = job.rounds.find(job.newest);
    const bool is_of_it = newest != job.rounds.end() && newest->second.worlds.contains(from);
    if (leave->is_unusable && is_of_it) job.unusable_in = job.newest.epoch;
    has_unusable_node_ = has_unusable_node_ || leave->is_unusable;
  }
  const auto* stopped = std::get_if<control::Stopped>(&message);
  if (stopped == nullptr || !unreported_.contains({from, stopped->round})) return;
  // Nobody need tell what he was told.
  bool is_known = false;
  for (const auto& [name, round] : jobs_[epoch].rounds) {
    if (name.round == stopped->round && round.was_stopped_by_failure) is_known = true;
  }
  require(is_known, "S3: " + name_of(from) + " has stopped " +
                        name_of(RoundName{epoch, stopped->round}) +
                        " and keeps the failure of its worker to itself");
}

// ---------------------------------------------------------------- coordinators

void Checks::on_sent(const Membership* membership, Incarnation to,
                     const control::CoordinatorMessage& message) {
  if (membership == nullptr) return;
  if (membership->continued_epoch()) {
    on_continued(*membership, *membership->continued_epoch());
  }
  Job& job = job_of(membership->epoch());
  if (const auto* world = std::get_if<control::World>(&message)) {
    on_world(job, to, *world);
  } else if (const auto* stop = std::get_if<control::Stop>(&message)) {
    auto round = job.rounds.find(job.newest);
    // Who is told late, by itself, hears no cause.
    bool is_charge = stop->cause == control::StopCause::Failure &&
                     stop->round == job.newest.round && stop->why != "the round is over";
    if (round != job.rounds.end() && is_charge) round->second.was_stopped_by_failure = true;
  } else if (const auto* decided = std::get_if<control::Decided>(&message)) {
    on_decided(job, *membership, to, *decided);
  } else if (std::holds_alternative<control::Bye>(message)) {
    on_bye(job, *membership, to);
  }
}

void Checks::on_world(Job& job, Incarnation to, const control::World& world) {
  const RoundName name{world.epoch, world.round};
  const std::string where = name_of(name) + ": ";
  require(name >= job.newest, "S2: " + where + "told after a newer one");
  bool is_new = !job.rounds.contains(name);
  if (is_new) on_new_round(job, world);
  Round& round = job.rounds[name];
  const control::World& first = round.first;
  require(first.world_size == world.world_size && first.group_size == world.group_size &&
              first.master_addr == world.master_addr && first.master_port == world.master_port &&
              first.store_port == world.store_port && first.restart_count == world.restart_count &&
              first.max_restarts == world.max_restarts,
          "R1: " + where + "two worlds in one round");
  auto [known, is_first] = round.worlds.try_emplace(to, world);
  require(is_first || (known->second.group_rank == world.group_rank &&
                       known->second.base_rank == world.base_rank),
          "R1: " + where + "the place of " + name_of(to) + " has changed");
  require(!is_first || formed_now_.contains(name),
          "R1: " + where + name_of(to) + " is told a round that was formed without it");
}

void Checks::on_new_round(Job& job, const control::World& world) {
  RoundName name{world.epoch, world.round};
  const std::string where = name_of(name) + ": ";
  ++rounds_formed_;
  formed_now_.insert(name);
  for (const auto& [other, live] : live_) {
    require(!are_one_job(other, name) || live == 0,
            "R2: " + where + "formed while workers of " + name_of(other) + " live");
  }
  int64_t used = world.restart_count;
  const bool is_same_epoch = job.newest.epoch == world.epoch;
  require(!is_same_epoch ||
              (used >= job.budget_used && (used <= job.budget_used + 1 || jobs_.size() > 1)),
          "S3: " + where + "a round costs at most one restart");
  require(used <= world.max_restarts, "S3: " + where + "the budget is overspent");
  // Of all jobs: one that begins anew hears of those before it from whoever comes back late.
  require(used <= static_cast<int64_t>(failing_rounds_.size()),
          "S3: " + where + "more restarts were charged than rounds failed");
  if (auto last = job.rounds.find(job.newest); last != job.rounds.end()) {
    // What only a dead coordinator has heard is forgotten.
    require(!is_same_epoch || !last->second.was_stopped_by_failure || used > job.budget_used,
            "S3: " + where + "a failure was not charged");
    last->second.worlds.clear();  // only the newest is looked at, and there may be many nodes
  }
  job.budget_used = used;
  job.newest = name;
  job.unusable_in = Epoch();
  job.rounds[name].first = world;
}

void Checks::on_decided(Job& job, const Membership& membership, Incarnation to,
                        const control::Decided& decided) {
  const bool is_first = job.told.insert(to).second;
  if (!job.decided) {
    job.decided = decided;
    job.decided_in = membership.epoch();
  }
  // A later coordinator that nobody told may judge anew; its words may be others.
  const bool is_same_judge = job.decided_in == membership.epoch();
  require(job.decided->is_success == decided.is_success &&
              (!is_same_judge || job.decided->verdict == decided.verdict),
          "S5: " + name_of(to) + " is told another outcome than others");
  if (membership.phase() == Membership::Phase::Deciding) job.must_acknowledge.insert(to);
  if (!is_first) return;
  RoundName name{membership.epoch(), membership.round()};
  if (decided.is_success) {
    require(!failing_rounds_.contains(job.newest.round == name.round ? job.newest : name),
            "R8: success, though a worker of " + name_of(name) + " failed");
    require(live_workers_of(name.epoch, name.round) == 0,
            "R8: success, though workers of " + name_of(name) + " live");
    require(membership.round() > RoundNumber(), "R8: success without a round");
    // An outcome that an elected coordinator found written was decided while the store lived (R18).
    const bool is_decided_here = is_same_judge && membership.phase() == Membership::Phase::Deciding;
    const bool is_storeless = job.rounds[job.newest].first.is_agent_store &&
                              job.newest.epoch != membership.epoch() && is_decided_here;
    require(!is_storeless, "R13: success of a round whose store died with its coordinator");
  } else {
    require(live_workers_of(name.epoch, name.round) == 0,
            "R2: failure, though workers of " + name_of(name) + " live");
    bool is_portless = decided.verdict.find("could not open a port") != std::string::npos;
    // Of any coordinator: the message may have come before the recovery of the node's round.
    const bool is_unusable =
        has_unusable_node_ && decided.verdict.find("it is unusable") != std::string::npos;
    require(is_portless || is_unusable || decided.is_resumable || !failing_rounds_.empty(),
            "R7: failure, though no worker failed");
  }
}

void Checks::on_bye(Job& job, const Membership& membership, Incarnation to) {
  require(job.told.contains(to) && acked_.contains(to),
          "R9: bye to " + name_of(to) + " before it has acknowledged the outcome");
  // Who comes after the end goes on its own.
  for (Incarnation owed : std::exchange(job.must_acknowledge, {})) {
    auto node = membership.nodes().find(owed);
    bool is_here = node != membership.nodes().end() && node->second.is_connected();
    require(!is_here || acked_.contains(owed),
            "R9: bye before " + name_of(owed) + " has acknowledged the outcome");
  }
}

// Every round is formed and told within one call.
void Checks::after_call(const Membership* membership) {
  if (auto job = jobs_.find(root(membership->epoch())); job != jobs_.end()) {
    // Who was lost in between is owed nothing, even if it comes back before the first bye.
    std::erase_if(job->second.must_acknowledge,
                  [&](Incarnation owed) { return !membership->nodes().contains(owed); });
  }
  judge_unusable(*membership);
  const RoundName name{membership->epoch(), membership->round()};
  if (formed_now_.erase(name) == 0) return;
  const Round& round = jobs_.at(root(name.epoch)).rounds.at(name);
  judge_ranks(round, name_of(name) + ": ");
  const auto members = static_cast<int64_t>(round.worlds.size());
  require(members >= membership->terms().min_nodes && members <= membership->terms().max_nodes,
          "R2: a round of " + std::to_string(members) + " nodes");
}

// Nobody takes the place of an unusable node, and nobody waits for that.
void Checks::judge_unusable(const Membership& membership) {
  const auto job = jobs_.find(root(membership.epoch()));
  const bool is_over = membership.phase() == Membership::Phase::Gathering;
  if (job == jobs_.end() || !is_over || job->second.unusable_in != membership.epoch()) return;
  int64_t left = 0;
  for (const auto& [incarnation, node] : membership.nodes()) {
    const bool is_here = node.life == cpprun::Node::Life::Present && !node.is_draining();
    left += is_here ? 1 : 0;
  }
  require(left >= membership.terms().min_nodes,
          "stuck: a job waits for another node in the place of an unusable one");
}

void Checks::judge_ranks(const Round& round, const std::string& where) {
  std::map<int64_t, std::pair<Incarnation, const control::World*>> by_rank;
  for (const auto& [node, world] : round.worlds) {
    by_rank.emplace(world.group_rank, std::pair(node, &world));
  }
  require(by_rank.size() == round.worlds.size(), where + "a group rank is there twice");
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
