// Membership: how rounds form, stop and end.
#include <algorithm>
#include <utility>

#include "common/check.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "rendezvous/coordinator/membership.hpp"

namespace cpprun {

using control::StopCause;

void Membership::send(const Node& node, control::CoordinatorMessage message,
                      Effects& effects) const {
  if (node.is_connected()) effects.push_back(Send{*node.session, std::move(message)});
}

void Membership::update_ready(const Node& node) {
  if (node.is_ready()) {
    ready_.insert(node.id.incarnation);
  } else {
    ready_.erase(node.id.incarnation);
  }
}

// ---------------------------------------------------------------- stopping

// One stop to all members (R3). The round is over when each has stopped or is gone (R2).
void Membership::request_stop(StopCause cause, const std::string& why, Effects& effects) {
  if (is_recovering()) recovery_->must_stop = true;
  if (phase_ != Phase::Running) return;
  phase_ = Phase::Stopping;
  last_stop_ = control::Stop{round_, cause, why};
  effects.push_back(
      Note{Note::Level::Info, "stop", "round " + std::to_string(round_.value) + " stops: " + why});
  for (const auto& [incarnation, world] : worlds_) {
    auto it = nodes_.find(incarnation);
    if (it == nodes_.end() || it->second.work == Node::Work::Stopped) continue;
    pending_.insert(incarnation);
    if (it->second.is_draining()) continue;  // it is stopping already
    send(it->second, stop_of_round(cause, why), effects);
  }
}

control::Stop Membership::stop_of_round(StopCause cause, const std::string& why) const {
  return control::Stop{round_, cause, why, charged()};
}

// What round_ has cost. Its nodes keep it for a coordinator that comes after us (R13).
control::Charge Membership::charged() const {
  if (hang_budget_.has_charged(round_)) return control::Charge::Hang;
  return budget_.has_charged(round_) ? control::Charge::Failure : control::Charge::None;
}

// Follows up whatever an event has made possible.
void Membership::settle(Instant now, Effects& effects) {
  if (is_recovering()) end_recovery_if_due(now, effects);
  const bool is_over = phase_ == Phase::Stopping && pending_.empty();
  if (is_over) {
    phase_ = Phase::Gathering;
    say_waiting_at_ = now + options_.say_waiting;
    judge();
    if (failing_) {
      decision_ = failure();
      decide(effects);
    } else if (ends_resumable()) {
      decision_ = control::Decided{false, drained_by_ + " was asked to stop", true};
      decide(effects);
    }
  }
  // A spare takes the place of an unusable node. Without one the job ends, so that its scheduler
  // can start it elsewhere.
  if (phase_ == Phase::Gathering && !unusable_node_.empty() && nodes_left() < terms_.min_nodes) {
    decision_ = control::Decided{false, unusable_node_ + ", and " + why_no_round()};
    decide(effects);
  }
  if (phase_ == Phase::Gathering) try_form(now, effects);
  const bool is_short = static_cast<int64_t>(ready_.size()) < terms_.min_nodes;
  if (is_over && phase_ == Phase::Gathering && is_short) {  // who was in it learns why it waits
    for (Incarnation waiting : ready_) say_wait(nodes_.at(waiting), false, effects);
  }
  turn_unwanted_away(effects);
  if (phase_ == Phase::Deciding && pending_.empty()) {
    phase_ = Phase::Ended;
    for (const auto& [incarnation, node] : nodes_) send(node, control::Bye{}, effects);
  }
}

// Everything is saved and no round can follow: who is left need not wait for others.
bool Membership::ends_resumable() const {
  const bool is_short = static_cast<int64_t>(ready_.size()) < terms_.min_nodes;
  const bool is_asked = is_drained_ && !drained_by_.empty();
  return is_asked && has_saved_ && (is_short || (is_host_drained_ && !has_successor()));
}

// ---------------------------------------------------------------- growing

// A newcomer may be taken in. Not once a node has finished its part: its work would be done again.
bool Membership::may_grow() const {
  return phase_ == Phase::Running && done_.empty() && !ready_.empty() &&
         static_cast<int64_t>(worlds_.size()) < most_nodes();
}

// A place that was lost is filled without waiting for the interval of growth, but has one of its
// own: a node that comes and goes in a loop restarts the world at most twice in an interval.
Instant Membership::growth_deadline() const {
  if (!may_grow()) return Instant::never();
  const bool has_vacancy = worlds_.size() < largest_round_;
  return has_vacancy ? std::min(after_interval(grew_at_), after_interval(replaced_at_))
                     : after_interval(grew_at_);
}

Instant Membership::after_interval(std::optional<Instant> last) const {
  return last ? *last + terms_.scale_up_interval : Instant{};
}

void Membership::grow_if_due(Instant now, Effects& effects) {
  if (now < growth_deadline()) return;
  (now >= after_interval(grew_at_) ? grew_at_ : replaced_at_) = now;
  request_stop(StopCause::Growth, "a node joins", effects);
}

// ---------------------------------------------------------------- forming

Instant Membership::last_call_deadline() const {
  bool is_waiting = phase_ == Phase::Gathering && min_reached_at_ && worlds_.empty();
  if (!is_waiting || !has_store_port()) return Instant::never();
  if (terms_.last_call >= Duration{}) return *min_reached_at_ + terms_.last_call;
  return std::min(arrived_at_ + limits::kLastCall, *min_reached_at_ + limits::kLastCallMax);
}

void Membership::try_form(Instant now, Effects& effects) {
  auto ready = static_cast<int64_t>(ready_.size());
  if (ready < terms_.min_nodes || departure_) {
    min_reached_at_.reset();
    if (say_waiting_at_.is_never() && !nodes_.empty()) say_waiting_at_ = now + options_.say_waiting;
    return;
  }
  if (std::exchange(is_port_refused_, false)) effects.push_back(WantStorePort{options_.run_id});
  if (!min_reached_at_) min_reached_at_ = now;
  if (!has_store_port()) return;  // on_store_port() comes
  if (is_heir_awaited() || (is_host_drained_ && has_successor())) return;
  bool is_first = worlds_.empty();
  if (ready < most_nodes() && is_first && now < last_call_deadline()) return;
  form(effects);
}

namespace {

bool keep_copies(const std::vector<Node*>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node* node) { return node->facts.keeps_copies; });
}

}  // namespace

void Membership::form(Effects& effects) {
  std::vector<Node*> ready;
  RoundNumber newest = round_;
  for (Incarnation incarnation : ready_) {
    ready.push_back(&nodes_.at(incarnation));
    newest = std::max(newest, ready.back()->facts.round);
  }
  std::vector<Node*> ranked = rank_nodes(ready, most_nodes(), terms_.has_fixed_ranks);
  if (keep_copies(ranked)) ranked = fill_gaps(std::move(ranked));
  round_ = RoundNumber(newest.value + 1);
  phase_ = Phase::Running;
  min_reached_at_.reset();
  say_waiting_at_ = Instant::never();
  worlds_.clear();
  done_.clear();
  clocks_.clear();
  is_drained_ = has_saved_ = false;
  unusable_node_.clear();

  int64_t store_port = terms_.is_store_on_main_port ? 0 : *store_port_;
  std::string master = terms_.master_addr;
  if (master.empty()) {
    master = terms_.is_agent_store ? coordinator_address(ranked)
                                   : reachable_address(*ranked.front(), ranked);
  }
  int64_t port = terms_.master_port;
  if (port == 0) port = terms_.is_agent_store ? store_port : ranked.front()->facts.reserved_port;
  std::vector<RankShare> shares = share_ranks(ranked);
  std::vector<control::World> worlds;
  std::vector<bool> are_new;
  for (size_t i = 0; i < ranked.size(); ++i) {
    are_new.push_back(!ranked[i]->group_rank);
    ranked[i]->group_rank = static_cast<int64_t>(i);
    worlds.push_back(world_for(*ranked[i], shares[i], master, port, store_port));
    worlds.back().group_size = static_cast<int64_t>(ranked.size());
  }
  name_heir(ranked, worlds);
  add_snapshots(ranked, worlds, effects);
  add_copies(ranked, are_new, worlds);
  for (size_t i = 0; i < ranked.size(); ++i) {
    ranked[i]->work = Node::Work::Starting;
    worlds_.emplace(ranked[i]->id.incarnation, worlds[i]);
    ready_.erase(ranked[i]->id.incarnation);
  }
  keep(effects);
  effects.push_back(ServeStore{options_.run_id, round_, store_port});
  for (size_t i = 0; i < ranked.size(); ++i) send(*ranked[i], worlds[i], effects);
  largest_round_ = std::max(largest_round_, worlds_.size());
  for (Incarnation spare : ready_) {
    if (!is_unwanted(nodes_.at(spare))) say_wait(nodes_.at(spare), false, effects);
  }
  if (!terms_.is_store_on_main_port) {
    store_port_.reset();
    effects.push_back(WantStorePort{options_.run_id});
  }
  effects.push_back(
      Note{Note::Level::Info, "round",
           "round " + std::to_string(round_.value) + " of job '" + options_.run_id +
               "': " + text::count(ranked.size(), "node") + ", " +
               text::count(static_cast<size_t>(shares.front().world_size), "worker")});
}

control::World Membership::world_for(const Node& node, const RankShare& share,
                                     const std::string& master_addr, int64_t master_port,
                                     int64_t store_port) const {
  control::World world;
  world.epoch = epoch_;
  world.round = round_;
  world.group_rank = *node.group_rank;
  world.base_rank = share.base_rank;
  world.world_size = share.world_size;
  world.base_role_rank = share.base_role_rank;
  world.role_world_size = share.role_world_size;
  world.master_addr = master_addr;
  world.master_port = master_port;
  world.store_port = store_port;
  world.is_agent_store = terms_.is_agent_store;
  world.restart_count = budget_.used();
  world.hang_restarts = hang_budget_.used();
  world.operator_restarts = operator_restarts_;
  world.wanted_nodes = wanted_nodes_;
  world.max_restarts = budget_.max();
  world.needs_proof = needs_proof_;
  return world;
}

// What each node of the round resumes from, and where it fetches that.
void Membership::add_snapshots(const std::vector<Node*>& ranked,
                               std::vector<control::World>& worlds, Effects& effects) {
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
    control::Resume& resume = worlds[i].resume.emplace();
    resume.snapshot = choice->snapshot;
    worlds[i].snapshot_secret = secret;
    if (!choice->sources[i]) continue;
    const Node& source = *ranked[*choice->sources[i]];
    resume.source_address = reachable_address(source, ranked);
    resume.source_port = source.facts.snapshot_port;
  }
  effects.push_back(Note{Note::Level::Info, "resume",
                         "round " + std::to_string(round_.value) +
                             " resumes from the snapshot of step " +
                             std::to_string(choice->snapshot.step)});
}

// Who keeps copies of whose shares in memory, and where those that were lost may lie.
void Membership::add_copies(const std::vector<Node*>& ranked, const std::vector<bool>& are_new,
                            std::vector<control::World>& worlds) {
  std::vector<CopyView> views;
  for (size_t i = 0; i < ranked.size(); ++i) {
    const control::Register& facts = ranked[i]->facts;
    const bool serves = facts.snapshot_port != 0 && options_.make_secret;
    views.push_back({facts.keeps_copies && serves, are_new[i]});
  }
  const std::vector<CopyPeers> peers = choose_copies(views);
  const bool is_any = std::any_of(peers.begin(), peers.end(),
                                  [](const CopyPeers& each) { return each.of.has_value(); });
  if (!is_any) return;
  const auto peer = [&](std::optional<size_t> index) -> std::optional<control::Peer> {
    if (!index) return std::nullopt;
    const Node& node = *ranked[*index];
    return control::Peer{reachable_address(node, ranked), node.facts.snapshot_port};
  };
  const bool has_secret = resume_ && is_resume_fetched_;
  const std::string fresh = has_secret ? "" : options_.make_secret();
  for (size_t i = 0; i < worlds.size(); ++i) {
    if (!has_secret) worlds[i].snapshot_secret = fresh;
    worlds[i].copies_of = peer(peers[i].of);
    worlds[i].copies_at = peer(peers[i].at);
  }
}

std::optional<control::SnapshotName> Membership::newest_snapshot() const {
  std::optional<control::SnapshotName> newest;
  for (const auto& [incarnation, node] : nodes_) {
    for (const control::SnapshotName& snapshot : node.facts.snapshots) {
      if (!newest || newest->step < snapshot.step) newest = snapshot;
    }
  }
  return newest;
}

void Membership::on_store_port(Instant now, int64_t port, Effects& effects) {
  if (port == 0) {
    effects.push_back(Note{Note::Level::Warning, "no_store_port",
                           "no port for the next round's store could be opened"});
    is_port_refused_ = phase_ != Phase::Gathering;  // it is asked for again when it is needed
    if (phase_ == Phase::Gathering) {
      failing_ = "the coordinator could not open a port for the round's store";
      decision_ = control::Decided{false, *failing_};
      decide(effects);
      settle(now, effects);
    }
    return;
  }
  store_port_ = port;
  settle(now, effects);
}

// ---------------------------------------------------------------- the end

// decision_ goes to all that are connected; each keeps it and acknowledges (R9).
void Membership::decide(Effects& effects) {
  phase_ = Phase::Deciding;
  pending_.clear();
  keep(effects);
  for (const auto& [incarnation, node] : nodes_) {
    // An heir that is cut off must not take our leaving for our death (R14).
    if (!node.is_connected() && &node != heir_node()) continue;
    send(node, decision_, effects);
    pending_.insert(incarnation);
  }
  say_waiting_at_ = Instant::never();
  effects.push_back(DropStores{options_.run_id});
  effects.push_back(Note{Note::Level::Info, "decided",
                         decision_.is_success ? "all workers ended well" : decision_.verdict});
}

// ---------------------------------------------------------------- telling why

std::string Membership::why_no_round() const {
  switch (phase_) {
    case Phase::Recovering:
      return "another coordinator has led this job; its nodes are waited for";
    case Phase::Running:
      return static_cast<int64_t>(worlds_.size()) >= most_nodes()
                 ? "a round runs with " + text::count(worlds_.size(), "node") +
                       (wanted_nodes_ ? ", as many as an operator wants"
                                      : ", the most that --nnodes allows") +
                       "; this node is a spare: it takes a lost node's place, or ends with the job"
                 : "a round runs; this node is taken in with the next one";
    case Phase::Stopping:
      return "the last round is stopping; " + text::count(pending_.size(), "node") +
             " still have workers";
    case Phase::Gathering:
      return std::to_string(ready_.size()) + " of at least " + std::to_string(terms_.min_nodes) +
             " nodes are here" +
             (terms_.min_nodes == terms_.max_nodes
                  ? ""
                  : " (at most " + std::to_string(terms_.max_nodes) + ")");
    case Phase::Deciding:
    case Phase::Ended:
      return "the job is over";
  }
  return "";
}

void Membership::say_waiting(Instant now, Effects& effects) {
  say_waiting_at_ = now + options_.say_waiting;
  for (const auto& [incarnation, node] : nodes_) {
    if (!is_member(incarnation) || phase_ == Phase::Gathering) say_wait(node, true, effects);
  }
}

}  // namespace cpprun
