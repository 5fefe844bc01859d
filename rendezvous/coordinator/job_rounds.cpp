// Job: how rounds form, stop and end.
#include <algorithm>
#include <utility>

#include "common/check.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "rendezvous/coordinator/job.hpp"

namespace cpprun {

using control::StopCause;

void Job::send(const Node& node, control::CoordinatorMessage message, Effects& effects) const {
  if (node.is_connected()) effects.push_back(Send{*node.session, std::move(message)});
}

void Job::update_ready(const Node& node) {
  if (node.is_ready()) {
    ready_.insert(node.id.incarnation);
  } else {
    ready_.erase(node.id.incarnation);
  }
}

// ---------------------------------------------------------------- stopping

// One stop to all members (R3). The round is over when each has stopped or is gone (R2).
void Job::request_stop(StopCause cause, const std::string& why, Effects& effects) {
  if (is_recovering()) recovery_->must_stop = true;
  if (phase_ != Phase::Running) return;
  phase_ = Phase::Stopping;
  last_stop_ = control::Stop{round_, cause, why};
  effects.push_back(LogEvent{LogEvent::Level::Info, "stop",
                             "round " + std::to_string(round_.value) + " stops: " + why});
  for (const auto& [incarnation, assignment] : assignments_) {
    auto it = nodes_.find(incarnation);
    if (it == nodes_.end() || it->second.worker_phase == Node::WorkerPhase::Stopped) continue;
    pending_.insert(incarnation);
    if (it->second.is_draining()) continue;  // it is stopping already
    send(it->second, stop_of_round(cause, why), effects);
  }
}

control::Stop Job::stop_of_round(StopCause cause, const std::string& why) const {
  return control::Stop{round_, cause, why, charged()};
}

// What round_ has cost. Its nodes keep it for a coordinator that comes after us (R13).
control::RestartCharge Job::charged() const {
  if (hang_restart_budget_.has_charged(round_)) return control::RestartCharge::Hang;
  return restart_budget_.has_charged(round_) ? control::RestartCharge::Failure
                                             : control::RestartCharge::None;
}

// Follows up whatever an event has made possible.
void Job::advance(Instant now, Effects& effects) {
  if (is_recovering()) end_recovery_if_due(now, effects);
  const bool is_over = phase_ == Phase::Stopping && pending_.empty();
  if (is_over) {
    phase_ = Phase::WaitingForNodes;
    report_waiting_at_ = now + options_.wait_reminder_interval;
    find_root_cause();
    if (failing_) {
      job_result_ = failure();
      finish_job(effects);
    } else if (ends_resumable()) {
      job_result_ = control::JobResult{false, drained_by_ + " was asked to stop", true};
      finish_job(effects);
    }
  }
  // A spare takes the place of an unusable node. Without one the job ends, so that its scheduler
  // can start it elsewhere.
  if (phase_ == Phase::WaitingForNodes && !unusable_node_.empty() &&
      nodes_left() < job_spec_.min_nodes) {
    job_result_ = control::JobResult{false, unusable_node_ + ", and " + why_no_round()};
    finish_job(effects);
  }
  if (phase_ == Phase::WaitingForNodes) try_form(now, effects);
  const bool is_short = static_cast<int64_t>(ready_.size()) < job_spec_.min_nodes;
  if (is_over && phase_ == Phase::WaitingForNodes &&
      is_short) {  // who was in it learns why it waits
    for (Incarnation waiting : ready_) send_wait(nodes_.at(waiting), false, effects);
  }
  turn_unwanted_away(effects);
  if (phase_ == Phase::Finishing && pending_.empty()) {
    phase_ = Phase::Ended;
    for (const auto& [incarnation, node] : nodes_) send(node, control::Bye{}, effects);
  }
}

// Everything is saved and no round can follow: who is left need not wait for others.
bool Job::ends_resumable() const {
  const bool is_short = static_cast<int64_t>(ready_.size()) < job_spec_.min_nodes;
  const bool is_asked = is_drained_ && !drained_by_.empty();
  return is_asked && has_saved_ && (is_short || (is_host_drained_ && !has_successor()));
}

// ---------------------------------------------------------------- growing

// A newcomer may be taken in. Not once a node has finished its part: its work would be done again.
bool Job::may_grow() const {
  return phase_ == Phase::Running && done_.empty() && !ready_.empty() &&
         static_cast<int64_t>(assignments_.size()) < most_nodes();
}

// A place that was lost is filled without waiting for the interval of growth, but has one of its
// own: a node that comes and goes in a loop restarts the world at most twice in an interval.
Instant Job::growth_deadline() const {
  if (!may_grow()) return Instant::never();
  const bool has_vacancy = assignments_.size() < largest_round_;
  return has_vacancy ? std::min(after_interval(grew_at_), after_interval(replaced_at_))
                     : after_interval(grew_at_);
}

Instant Job::after_interval(std::optional<Instant> last) const {
  return last ? *last + job_spec_.scale_up_interval : Instant{};
}

void Job::grow_if_due(Instant now, Effects& effects) {
  if (now < growth_deadline()) return;
  (now >= after_interval(grew_at_) ? grew_at_ : replaced_at_) = now;
  request_stop(StopCause::Growth, "a node joins", effects);
}

// ---------------------------------------------------------------- forming

Instant Job::last_call_deadline() const {
  bool is_waiting = phase_ == Phase::WaitingForNodes && min_reached_at_ && assignments_.empty();
  if (!is_waiting || !has_store_port()) return Instant::never();
  if (job_spec_.last_call >= Duration{}) return *min_reached_at_ + job_spec_.last_call;
  return std::min(arrived_at_ + limits::kLastCall, *min_reached_at_ + limits::kLastCallMax);
}

void Job::try_form(Instant now, Effects& effects) {
  auto ready = static_cast<int64_t>(ready_.size());
  if (ready < job_spec_.min_nodes || shutdown_request_) {
    min_reached_at_.reset();
    if (report_waiting_at_.is_never() && !nodes_.empty())
      report_waiting_at_ = now + options_.wait_reminder_interval;
    return;
  }
  if (std::exchange(is_port_refused_, false)) effects.push_back(WantStorePort{options_.run_id});
  if (!min_reached_at_) min_reached_at_ = now;
  if (!has_store_port()) return;  // on_store_port() comes
  if (is_standby_awaited() || (is_host_drained_ && has_successor())) return;
  bool is_first = assignments_.empty();
  if (ready < most_nodes() && is_first && now < last_call_deadline()) return;
  form(effects);
}

namespace {

bool keep_replicas(const std::vector<Node*>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node* node) { return node->facts.keeps_replicas; });
}

}  // namespace

void Job::form(Effects& effects) {
  std::vector<Node*> ready;
  RoundNumber newest = round_;
  for (Incarnation incarnation : ready_) {
    ready.push_back(&nodes_.at(incarnation));
    newest = std::max(newest, ready.back()->facts.round);
  }
  std::vector<Node*> ranked = rank_nodes(ready, most_nodes(), job_spec_.has_fixed_ranks);
  if (keep_replicas(ranked)) ranked = keep_previous_ranks(std::move(ranked));
  round_ = RoundNumber(newest.value + 1);
  phase_ = Phase::Running;
  min_reached_at_.reset();
  report_waiting_at_ = Instant::never();
  assignments_.clear();
  done_.clear();
  clocks_.clear();
  is_drained_ = has_saved_ = false;
  unusable_node_.clear();

  int64_t store_port = job_spec_.is_store_on_main_port ? 0 : *store_port_;
  std::string master = job_spec_.master_addr;
  if (master.empty()) {
    master = job_spec_.is_agent_store ? coordinator_address(ranked)
                                      : reachable_address(*ranked.front(), ranked);
  }
  int64_t port = job_spec_.master_port;
  if (port == 0) port = job_spec_.is_agent_store ? store_port : ranked.front()->facts.reserved_port;
  std::vector<RankRange> rank_ranges = assign_ranks(ranked);
  std::vector<control::RankAssignment> assignments;
  std::vector<bool> are_new;
  for (size_t i = 0; i < ranked.size(); ++i) {
    are_new.push_back(!ranked[i]->group_rank);
    ranked[i]->group_rank = static_cast<int64_t>(i);
    assignments.push_back(assignment_for(*ranked[i], rank_ranges[i], master, port, store_port));
    assignments.back().group_size = static_cast<int64_t>(ranked.size());
  }
  choose_standby(ranked, assignments);
  add_snapshots(ranked, assignments, effects);
  add_replicas(ranked, are_new, assignments);
  for (size_t i = 0; i < ranked.size(); ++i) {
    ranked[i]->worker_phase = Node::WorkerPhase::Starting;
    assignments_.emplace(ranked[i]->id.incarnation, assignments[i]);
    ready_.erase(ranked[i]->id.incarnation);
  }
  persist(effects);
  effects.push_back(ServeStore{options_.run_id, round_, store_port});
  for (size_t i = 0; i < ranked.size(); ++i) send(*ranked[i], assignments[i], effects);
  largest_round_ = std::max(largest_round_, assignments_.size());
  for (Incarnation spare : ready_) {
    if (!is_unwanted(nodes_.at(spare))) send_wait(nodes_.at(spare), false, effects);
  }
  if (!job_spec_.is_store_on_main_port) {
    store_port_.reset();
    effects.push_back(WantStorePort{options_.run_id});
  }
  effects.push_back(
      LogEvent{LogEvent::Level::Info, "round",
               "round " + std::to_string(round_.value) + " of job '" + options_.run_id +
                   "': " + text::count(ranked.size(), "node") + ", " +
                   text::count(static_cast<size_t>(rank_ranges.front().world_size), "worker")});
}

control::RankAssignment Job::assignment_for(const Node& node, const RankRange& rank_range,
                                            const std::string& master_addr, int64_t master_port,
                                            int64_t store_port) const {
  control::RankAssignment assignment;
  assignment.term = term_;
  assignment.round = round_;
  assignment.group_rank = *node.group_rank;
  assignment.base_rank = rank_range.base_rank;
  assignment.world_size = rank_range.world_size;
  assignment.base_role_rank = rank_range.base_role_rank;
  assignment.role_world_size = rank_range.role_world_size;
  assignment.master_addr = master_addr;
  assignment.master_port = master_port;
  assignment.store_port = store_port;
  assignment.is_agent_store = job_spec_.is_agent_store;
  assignment.restart_count = restart_budget_.used();
  assignment.hang_restarts = hang_restart_budget_.used();
  assignment.admin_restarts = admin_restarts_;
  assignment.wanted_nodes = wanted_nodes_;
  assignment.max_restarts = restart_budget_.max();
  assignment.needs_proof = needs_proof_;
  return assignment;
}

// What each node of the round resumes from, and where it fetches that.
void Job::add_snapshots(const std::vector<Node*>& ranked,
                        std::vector<control::RankAssignment>& assignments, Effects& effects) {
  std::vector<SnapshotView> views;
  for (const Node* node : ranked) {
    const bool serves = node->facts.snapshot_port != 0 && options_.make_secret;
    views.push_back({node->facts.has_snapshot_dir, serves, node->facts.snapshots});
    std::erase_if(views.back().complete,
                  [this](const auto& each) { return unusable_.contains(each.id); });
  }
  const std::optional<SnapshotChoice> choice = choose_snapshot(views, damaged_);
  resume_.reset();
  if (!choice) return;
  resume_ = choice->snapshot;
  is_resume_fetched_ = choice->is_fetched();
  const std::string secret = is_resume_fetched_ ? options_.make_secret() : "";
  for (size_t i = 0; i < ranked.size(); ++i) {
    if (!views[i].has_dir) continue;
    control::ResumePoint& resume = assignments[i].resume.emplace();
    resume.snapshot = choice->snapshot;
    assignments[i].snapshot_secret = secret;
    if (!choice->sources[i]) continue;
    const Node& source = *ranked[*choice->sources[i]];
    resume.source_address = reachable_address(source, ranked);
    resume.source_port = source.facts.snapshot_port;
  }
  effects.push_back(LogEvent{LogEvent::Level::Info, "resume",
                             "round " + std::to_string(round_.value) +
                                 " resumes from the snapshot of step " +
                                 std::to_string(choice->snapshot.step)});
}

// Who keeps replicas of whose shards in memory, and where those that were lost may lie.
void Job::add_replicas(const std::vector<Node*>& ranked, const std::vector<bool>& are_new,
                       std::vector<control::RankAssignment>& assignments) {
  std::vector<ReplicaView> views;
  for (size_t i = 0; i < ranked.size(); ++i) {
    const control::Register& facts = ranked[i]->facts;
    const bool serves = facts.snapshot_port != 0 && options_.make_secret;
    views.push_back({facts.keeps_replicas && serves, are_new[i]});
  }
  const std::vector<ReplicaPeers> peers = choose_replicas(views);
  const bool is_any = std::any_of(peers.begin(), peers.end(),
                                  [](const ReplicaPeers& each) { return each.of.has_value(); });
  if (!is_any) return;
  const auto peer = [&](std::optional<size_t> index) -> std::optional<control::PeerAddress> {
    if (!index) return std::nullopt;
    const Node& node = *ranked[*index];
    return control::PeerAddress{reachable_address(node, ranked), node.facts.snapshot_port};
  };
  const bool has_secret = resume_ && is_resume_fetched_;
  const std::string fresh = has_secret ? "" : options_.make_secret();
  for (size_t i = 0; i < assignments.size(); ++i) {
    if (!has_secret) assignments[i].snapshot_secret = fresh;
    assignments[i].replicas_of = peer(peers[i].of);
    assignments[i].replicas_at = peer(peers[i].at);
  }
}

std::optional<control::SnapshotName> Job::newest_snapshot() const {
  std::optional<control::SnapshotName> newest;
  for (const auto& [incarnation, node] : nodes_) {
    for (const control::SnapshotName& snapshot : node.facts.snapshots) {
      if (!newest || newest->step < snapshot.step) newest = snapshot;
    }
  }
  return newest;
}

void Job::on_store_port(Instant now, int64_t port, Effects& effects) {
  if (port == 0) {
    effects.push_back(LogEvent{LogEvent::Level::Warning, "no_store_port",
                               "no port for the next round's store could be opened"});
    is_port_refused_ = phase_ != Phase::WaitingForNodes;  // it is asked for again when it is needed
    if (phase_ == Phase::WaitingForNodes) {
      failing_ = "the coordinator could not open a port for the round's store";
      job_result_ = control::JobResult{false, *failing_};
      finish_job(effects);
      advance(now, effects);
    }
    return;
  }
  store_port_ = port;
  advance(now, effects);
}

// ---------------------------------------------------------------- the end

// job_result_ goes to all that are connected; each keeps it and acknowledges (R9).
void Job::finish_job(Effects& effects) {
  phase_ = Phase::Finishing;
  pending_.clear();
  persist(effects);
  for (const auto& [incarnation, node] : nodes_) {
    // A standby that is cut off must not take our leaving for our death (R14).
    if (!node.is_connected() && &node != standby_node()) continue;
    send(node, job_result_, effects);
    pending_.insert(incarnation);
  }
  report_waiting_at_ = Instant::never();
  effects.push_back(DropStores{options_.run_id});
  effects.push_back(
      LogEvent{LogEvent::Level::Info, "job_result",
               job_result_.is_success ? "all workers ended well" : job_result_.failure_summary});
}

// ---------------------------------------------------------------- telling why

std::string Job::why_no_round() const {
  switch (phase_) {
    case Phase::Recovering:
      return "another coordinator has led this job; its nodes are waited for";
    case Phase::Running:
      return static_cast<int64_t>(assignments_.size()) >= most_nodes()
                 ? "a round runs with " + text::count(assignments_.size(), "node") +
                       (wanted_nodes_ ? ", as many as an operator wants"
                                      : ", the most that --nnodes allows") +
                       "; this node is a spare: it takes a lost node's place, or ends with the job"
                 : "a round runs; this node is taken in with the next one";
    case Phase::Stopping:
      return "the last round is stopping; " + text::count(pending_.size(), "node") +
             " still have workers";
    case Phase::WaitingForNodes:
      return std::to_string(ready_.size()) + " of at least " + std::to_string(job_spec_.min_nodes) +
             " nodes are here" +
             (job_spec_.min_nodes == job_spec_.max_nodes
                  ? ""
                  : " (at most " + std::to_string(job_spec_.max_nodes) + ")");
    case Phase::Finishing:
    case Phase::Ended:
      return "the job is over";
  }
  return "";
}

void Job::report_waiting(Instant now, Effects& effects) {
  report_waiting_at_ = now + options_.wait_reminder_interval;
  for (const auto& [incarnation, node] : nodes_) {
    if (!is_member(incarnation) || phase_ == Phase::WaitingForNodes) send_wait(node, true, effects);
  }
}

}  // namespace cpprun
