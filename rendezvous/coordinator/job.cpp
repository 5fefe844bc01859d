#include "rendezvous/coordinator/job.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/failure/failure_summary.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "common/version.hpp"
#include "rendezvous/coordinator/hosts/exclusions.hpp"
#include "rendezvous/coordinator/registration_checks.hpp"
#include "rendezvous/coordinator/rounds/ranking.hpp"
#include "rendezvous/coordinator/waiting_nodes.hpp"
#include "rendezvous/protocol/worker_lease_duration.hpp"

namespace cpprun {

using control::StopCause;

Job::Job(JobOptions options, const control::JobSpec& job_spec, Effects& effects)
    : options_(std::move(options)),
      job_spec_(job_spec),
      state_(job_spec, options_.leader_lease.has_value(), options_.make_secret),
      leases_(job_spec.lease, options_.leader_lease.has_value()),
      formation_(options_.run_id, job_spec, effects),
      failures_(job_spec.startup_failures, job_spec.stops_on_repeat),
      recovery_(options_, job_spec) {
  state_.term = state_.first_term = options_.term;
  state_.needs_admin_token = options_.needs_admin_token;
  state_.job_key = options_.job_key;
  if (is_recovering()) phase_ = Phase::Recovering;
  if (options_.leader_lease) {
    leases_.lead_until(options_.leader_lease->until);
    if (options_.leader_lease->facts) restore_persisted_state(*options_.leader_lease->facts);
  }
}

// ---------------------------------------------------------------- registration

void Job::on_register(Instant now, SessionId session, const control::Hello& hello,
                      const control::Register& message, const SessionAddresses& addresses,
                      Effects& effects) {
  const Status ok = check_registration(nodes_, hello, message, job_spec_, options_.run_id);
  if (!ok) {
    log_warning(effects, "refused",
                "refused the agent on " + hello.node.name + " (" + addresses.peer_address +
                    "): " + ok.error().text);
    return refuse(effects, session, control::Refused{ok.error().text});
  }
  recovery_.restore(now, message, is_new(), {state_, failures_, formation_});
  if (is_recovering()) phase_ = Phase::Recovering;
  const bool is_own = options_.embedded == hello.node.incarnation;  // it has read --state-dir
  if (message.host_records &&
      (is_own || recovery_.is_from_other_coordinator(message.assignment, state_))) {
    if (state_.hosts.learn(*message.host_records)) apply_exclusions(effects);
  }
  Node& node = add_node(now, session, hello, message, addresses, effects);
  if (is_recovering()) {
    recovery_.adopt(now, node, {state_, failures_, formation_});
    send_wait(node, false, effects);
  } else {
    place_node(now, node, effects);
  }
  if (const Node* still = nodes_.find(hello.node.incarnation)) {
    nodes_.update_ready(*still);
    if (is_shutting_down()) send(*still, *state_.admin.shutdown_request(), effects);
  }
  advance(now, effects);
}

Node& Job::add_node(Instant now, SessionId session, const control::Hello& hello,
                    const control::Register& message, const SessionAddresses& addresses,
                    Effects& effects) {
  if (nodes_.find(hello.node.incarnation) == nullptr) formation_.on_arrival(now);
  const Node* known = nodes_.find(hello.node.incarnation);
  const bool had_failed_check = known != nullptr && known->has_failed_check();
  Node& node = nodes_.add(now, session, hello, message, addresses, effects);
  node.is_excluded = state_.hosts.is_excluded(node.id.name);
  if (!had_failed_check) count_failed_check(node, effects);
  node.is_embedded = options_.embedded == hello.node.incarnation;
  if (node.is_embedded && node.is_draining()) is_host_leaving_ = is_exiting_ = true;
  if (message.knows_standby && !options_.is_standby) formation_.await_redirect(now);
  fault_quota_.learn(message.fault_counts);
  if (!is_recovering() || recovery_.is_of_other_job(message.assignment, state_))
    node.facts.assignment.reset();
  if (job_spec_.has_fixed_ranks) node.facts.node_rank = message.node_rank.value_or(0);
  if (has_missed_assignment(node)) {  // its workers had stopped when the round formed (R2)
    node.worker_phase =
        phase_ == Phase::Running ? Node::WorkerPhase::Starting : Node::WorkerPhase::Stopped;
  }
  leases_.on_registered(now, node);
  if (!is_recovering()) confirm_registration(node, effects);
  return node;
}

void Job::confirm_registration(const Node& node, Effects& effects) const {
  control::Registered registered{state_.term, options_.coordinator, version()};
  registered.is_standby = state_.standby.is_chosen(node.id.incarnation);
  registered.takes_time_spent = registered.takes_compute_times = true;
  registered.takes_processes = true;
  if (!leases_.is_exempt(node)) {
    registered.heartbeat = heartbeat_of(job_spec_.lease, job_spec_.heartbeat);
    registered.lease = job_spec_.lease;
  }
  send(node, registered, effects);
}

// Sends a node that has just registered what the phase of the job and its own state ask for.
void Job::place_node(Instant now, Node& node, Effects& effects) {
  const Incarnation incarnation = node.id.incarnation;
  if (has_job_result()) return result_.send_to(node, effects);
  if (state_.round.is_member(incarnation)) return readmit(node, effects);
  if (node.worker_phase == Node::WorkerPhase::Running ||
      node.worker_phase == Node::WorkerPhase::Done) {
    return stop_stale_workers(node, effects);
  }
  nodes_.update_ready(node);
  if (phase_ == Phase::Running) grow_if_due(now, effects);
  if (phase_ == Phase::WaitingForNodes) try_form(now, effects);
  if (!state_.round.is_member(incarnation) && !is_unwanted(node)) send_wait(node, false, effects);
}

// A member of the newest round has connected again (R1).
void Job::readmit(Node& node, Effects& effects) {
  if (has_missed_assignment(node)) {
    stop_.on_stopped(node.id.incarnation);  // it does not know the round that it would have to stop
    if (phase_ == Phase::Running) {
      send(node, state_.round.assignments().at(node.id.incarnation), effects);
    } else {
      send_wait(node, false, effects);  // else it would not know the standby (R14)
    }
    return;
  }
  const bool is_done = node.worker_phase == Node::WorkerPhase::Done;
  const bool is_running = node.worker_phase == Node::WorkerPhase::Running;
  if (phase_ == Phase::WaitingForNodes && !is_done && !node.has_workers()) return;
  if (phase_ != Phase::WaitingForNodes && is_running && node.is_draining()) {
    return request_drain(node, effects);
  }
  if (phase_ == Phase::WaitingForNodes || (phase_ == Phase::Stopping && is_running)) {
    return send(node, stop_of_round(StopCause::NodeLost, "the round is over"), effects);
  }
  if (is_running) return;
  if (is_done) return on_done(node, node.facts.round, effects);
  // Its worker lease has ended, or its workers never started: the round can't continue with this
  // node.
  stop_.on_stopped(node.id.incarnation);
  stop_after_loss(node.id.name + " lost its workers while it was cut off", effects);
}

std::string Job::why_no_round() const {
  const std::string why = formation_.why_not(formation_view(), !has_too_few_ready());
  if (!why.empty()) return why;
  return cpprun::why_no_round(phase_, state_, job_spec_, nodes_, stop_.pending_count(), rivals());
}

void Job::send_wait(const Node& node, bool is_reminder, Effects& effects) const {
  const bool is_spare = phase_ == Phase::Running;
  const Node* standby = state_.standby.node(nodes_);
  const bool has_other_standby = standby != nullptr && standby != &node;
  const std::string left_out = why_left_out(node, state_.hosts);
  const bool is_wanted = left_out.empty() && phase_ == Phase::WaitingForNodes;
  const int64_t missing = is_wanted ? nodes_.missing_count(job_spec_.min_nodes) : 0;
  send(node,
       control::Wait{left_out.empty() ? why_no_round() : left_out, is_spare, is_reminder,
                     has_other_standby ? state_.standby.standby() : std::nullopt,
                     formation_.awaits_redirect(formation_view()), node.is_excluded, missing,
                     formation_.delay()},
       effects);
}

// ---------------------------------------------------------------- messages of registered nodes

void Job::on_message(Instant now, SessionId session, const control::AgentMessage& message,
                     Effects& effects) {
  Node* node = nodes_.find(session);
  CPPRUN_CHECK(node != nullptr);
  node->heard_at = now;
  const Incarnation incarnation = node->id.incarnation;
  if (const auto* ping = std::get_if<control::Ping>(&message)) {
    if (is_recovering()) {  // no worker lease before the newest round is known (R13)
      node->unanswered = ping->seq;
    } else {
      send(*node, control::Pong{ping->seq, leases_.worker_lease(now)}, effects);
    }
    turn_unwanted_away(effects);
    return;
  }
  if (take_report(now, *node, message)) return;
  if (const auto* request = std::get_if<control::FaultPermitRequest>(&message)) {
    return fault_quota_.answer(*node, *request, nodes_, effects);
  }
  if (const auto* command = std::get_if<control::AdminCommand>(&message)) {
    return reply_to_admin_command(now, *node, *command, effects);
  }
  if (const auto* started = std::get_if<control::Started>(&message)) {
    start_totals_.add(std::exchange(node->starts, started->starts), started->starts);
    if (started->round == round() && node->worker_phase == Node::WorkerPhase::Starting) {
      node->worker_phase = Node::WorkerPhase::Running;
    }
  } else if (const auto* failed = std::get_if<control::Failed>(&message)) {
    failures_.note_clock(now, *node, *failed);
    on_failed(*node, *failed, effects);
  } else if (const auto* done = std::get_if<control::Done>(&message)) {
    on_done(*node, done->round, effects);
  } else if (const auto* stopped = std::get_if<control::Stopped>(&message)) {
    on_stopped(*node, *stopped, effects);
  } else if (std::holds_alternative<control::Draining>(message)) {
    on_draining(*node, effects);
  } else if (const auto* snapshots = std::get_if<control::Snapshots>(&message)) {
    node->take(snapshots->snapshots);
    if (state_.round.is_member(incarnation)) state_.snapshots.mark_unusable(snapshots->unusable);
  } else if (const auto* check = std::get_if<control::NodeCheck>(&message)) {
    on_node_check(*node, *check, effects);
  } else if (const auto* result = std::get_if<control::LinkResult>(&message)) {
    formation_.on_link_result(*node, *result);
  } else if (const auto* times = std::get_if<control::ComputeTimes>(&message)) {
    on_compute_times(*node, *times, effects);
  } else if (const auto* leave = std::get_if<control::Leave>(&message)) {
    on_leave(*node, *leave, effects);
  } else if (std::holds_alternative<control::Ack>(message)) {
    on_ack(*node, effects);
  }
  if (const Node* still = nodes_.find(incarnation)) nodes_.update_ready(*still);
  advance(now, effects);
}

void Job::on_failed(Node& node, const control::Failed& message, Effects& effects) {
  const bool is_current =
      message.round == round() && state_.round.is_member(node.id.incarnation) &&
      (phase_ == Phase::Running || phase_ == Phase::Stopping || is_recovering());
  if (!is_current) return;
  const RootCause cause = FailureRecord::root_cause_of(node, message);
  const std::string what = describe(cause);
  if (state_.snapshots.is_new_damage(message)) {
    state_.snapshots.mark_damaged(message.damaged_snapshot);
    if (phase_ == Phase::Running) log_warning(effects, "damaged_snapshot", what);
    request_stop(StopCause::Snapshot, what, effects);
    return;
  }
  if (requested_stop_.is_active() && !message.is_fatal) return;  // it follows from that stop
  failures_.add(node, cause.end, cause.why);
  // A failure that a restart can't heal costs none (R7).
  const bool is_hang = message.end.is_hang();
  const bool may_replace = message.is_fatal && state_.hosts.is_on();  // else exclude_faulty_hosts()
  if (may_replace) state_.hosts.note_fatal_start(node.id.name, what);
  const bool may_restart =
      may_replace || (!message.is_fatal && state_.budgets.charge(round(), is_hang));
  if (!may_restart) failures_.fail_job(what + state_.budgets.used_text(is_hang));
  request_stop(StopCause::Failure, failed_worker_text(cause), effects);
}

void Job::on_done(Node& node, RoundNumber round, Effects& effects) {
  if (round != this->round() || !state_.round.is_member(node.id.incarnation)) return;
  node.worker_phase = Node::WorkerPhase::Done;
  state_.round.mark_done(node.id.incarnation);
  if (phase_ == Phase::Stopping) {
    return send(node, stop_of_round(StopCause::NodeLost, "the round is over"), effects);
  }
  if (phase_ == Phase::Running && state_.round.are_all_done()) {  // R8
    finish_job(control::JobResult{true, ""}, effects);
  }
}

void Job::on_stopped(Node& node, const control::Stopped& message, Effects& effects) {
  const bool is_member = state_.round.is_member(node.id.incarnation);
  if (is_member && message.round != round()) return;  // sent again, of an older round
  node.worker_phase = Node::WorkerPhase::Stopped;
  node.facts.reserved_port = message.reserved_port;
  node.take(message.snapshots);
  on_node_check(node, message.node_check, effects);
  node.last_step = message.step;
  if (!is_member) return;
  requested_stop_.on_workers_gone(message.has_saved);
  const bool is_current = phase_ == Phase::Running || phase_ == Phase::Stopping || is_recovering();
  if (message.failure && is_current && !requested_stop_.is_active()) {
    failures_.add(node, *message.failure, "");
  }
  stop_.on_stopped(node.id.incarnation);
  if (phase_ == Phase::Running || is_recovering()) {  // its worker lease had ended
    stop_after_loss(node.id.name + " stopped its workers on its own", effects);
  }
}

void Job::on_draining(Node& node, Effects& effects) {
  if (node.is_draining()) return;
  node.facts.is_draining = true;
  if (node.is_embedded) is_host_leaving_ = is_exiting_ = true;
  requested_stop_.on_draining(node.id.name);
  log_info(effects, "draining", "the agent on " + node.id.name + " was asked to stop");
  if (state_.round.is_member(node.id.incarnation)) request_drain(node, effects);
}

void Job::on_leave(const Node& node, const control::Leave& message, Effects& effects) {
  const Incarnation incarnation = node.id.incarnation;
  const bool is_member = state_.round.is_member(incarnation);
  if (is_member) requested_stop_.on_workers_gone(message.has_saved);
  const std::string why = node.id.name + " left (" + message.why + ")";
  if (message.is_unusable && is_member) {
    unusable_node_ = why;
    state_.hosts.note_loss(node.id.name, why);
    // Its process ends, and with it this coordinator, if another node can lead the job (R15).
    is_host_leaving_ = is_host_leaving_ || node.is_embedded;
    charge_loss(why);
    log_warning(effects, "node_unusable", why);
  }
  on_node_lost(incarnation, StopCause::NodeLeft, why, effects);
}

control::AdminReply Job::on_admin_command(Instant now, const control::AdminCommand& command,
                                          const std::string& by, Effects& effects) {
  if (has_job_result()) {
    advance(now, effects);
    return {command.id, false, "the job is over"};
  }
  const bool is_delayed = formation_.is_delayed() && !has_too_few_ready();
  const AdminCommandHandler::JobView view{nodes_,         state_.round, phase_ == Phase::Running,
                                          why_no_round(), state_.hosts, is_delayed};
  const auto outcome = state_.admin.carry_out(command, by, view, effects);
  if (outcome && outcome->ends_delay) formation_.end_delay();
  if (outcome && outcome->stop_because) {
    requested_stop_.begin("");
    request_stop(outcome->stop_cause, *outcome->stop_because, effects);
  }
  advance(now, effects);
  if (!outcome) return {command.id, false, outcome.error().text};
  log_info(effects, "admin_command", "an operator on " + by + ": " + outcome->text);
  return {command.id, true, outcome->text};
}

// The reply goes first: the command may end the asker.
void Job::reply_to_admin_command(Instant now, const Node& asker,
                                 const control::AdminCommand& command, Effects& effects) {
  const Incarnation incarnation = asker.id.incarnation;
  Effects later;
  control::AdminReply reply = on_admin_command(now, command, asker.id.name, later);
  send(nodes_.at(incarnation), std::move(reply), effects);
  effects.insert(effects.end(), later.begin(), later.end());
}

// ---------------------------------------------------------------- lost nodes

void Job::on_closed(Instant now, SessionId session, Ending how, Effects& effects) {
  Node* node = nodes_.find(session);
  if (node == nullptr) return;  // a newer connection has replaced this one (R4)
  nodes_.disconnect(*node);
  const Incarnation incarnation = node->id.incarnation;
  const bool has_part = phase_ != Phase::Ended &&
                        (node->has_workers() || node->worker_phase == Node::WorkerPhase::Done);
  // The agent in this process has no lease that could end; if it was asked to stop, it has gone.
  const bool is_leaving = node->is_embedded && node->is_draining();
  if (node->is_embedded && is_host_agent_ended_) {
    on_node_lost(incarnation, StopCause::NodeLeft, "the agent on " + node->id.name + " has ended",
                 effects);
  } else if (how == Ending::Reset && phase_ != Phase::Ended && !is_leaving) {
    // No evidence of death: the agent connects again, or its lease ends (R4, R5).
    nodes_.update_ready(*node);
  } else if (has_part) {
    leases_.on_died(now, *node);
    nodes_.update_ready(*node);
    if ((phase_ == Phase::Running || is_recovering()) && !state_.round.is_done(incarnation)) {
      stop_after_loss("the agent on " + node->id.name + " died", effects);
    }
  } else {
    on_node_lost(incarnation, StopCause::NodeLost, "the agent on " + node->id.name + " went away",
                 effects);
  }
  advance(now, effects);
}

// The connection of that agent may have broken before it could send that it leaves, and it has no
// lease that would end.
void Job::on_host_agent_ended(Instant now, bool is_exiting, Effects& effects) {
  is_host_agent_ended_ = true;
  is_exiting_ = is_exiting_ || is_exiting;
  for (const auto& [incarnation, node] : nodes_) {
    if (!node.is_embedded) continue;
    is_host_leaving_ = true;
    if (node.is_connected()) return;  // its last messages come, or its connection closes
    const std::string why = "the agent on " + node.id.name + " has ended";
    log_info(effects, "node_lost", why);
    on_node_lost(incarnation, StopCause::NodeLeft, why, effects);
    break;
  }
  advance(now, effects);
}

// The node's workers are certainly gone. `why` is the reason of the stop if the round needs the
// node.
void Job::on_node_lost(Incarnation incarnation, StopCause cause, const std::string& why,
                       Effects& effects) {
  const bool ends_round = state_.round.needs(incarnation);  // R3, R8
  if (cause == StopCause::NodeLost && ends_round) requested_stop_.on_workers_gone(false);
  const Node& node = nodes_.at(incarnation);
  const bool is_loss = cause == StopCause::NodeLost && ends_round && !node.is_draining() &&
                       (phase_ == Phase::Running || phase_ == Phase::Stopping);
  if (is_loss) state_.hosts.note_loss(node.id.name, why);
  if (cause == StopCause::NodeLost && ends_round) charge_loss(why);
  nodes_.erase(incarnation);
  stop_.on_stopped(incarnation);
  result_.on_done(incarnation);
  if (ends_round) request_stop(cause, why, effects);
}

void Job::on_lease_ended(Incarnation incarnation, Effects& effects) {
  const Node& node = nodes_.at(incarnation);
  const std::string why = "nothing was heard from " + node.id.name + " for " +
                          std::to_string(static_cast<int64_t>(to_seconds(job_spec_.lease))) + " s";
  // If a round ends because of it, the agents whose workers stop warn of it.
  const bool is_warned_of = phase_ == Phase::Running && state_.round.needs(incarnation);
  is_warned_of ? log_info(effects, "node_lost", why) : log_warning(effects, "node_lost", why);
  if (node.session) effects.emplace_back(Close{*node.session, true});
  state_.standby.on_silent(incarnation);
  on_node_lost(incarnation, StopCause::NodeLost, why, effects);
}

void Job::on_time(Instant now, Effects& effects) {
  for (Incarnation dead : leases_.expire_dead(now, nodes_)) {
    on_node_lost(dead, StopCause::NodeLost, "an agent died", effects);
  }
  for (Incarnation silent : leases_.expire_silent(now, nodes_, is_recovering())) {
    on_lease_ended(silent, effects);
  }
  formation_.on_time(now);
  grow_if_due(now, effects);
  if (now >= report_waiting_at_) report_waiting(now, effects);
  advance(now, effects);
}

Instant Job::next_deadline() const {
  return std::min({leases_.next_deadline(), formation_.next_deadline(formation_view()),
                   report_waiting_at_, recovery_.next_deadline()});
}

void Job::turn_unwanted_away(Effects& effects) {
  if (phase_ != Phase::Running) return;
  std::vector<Incarnation> unwanted;
  for (Incarnation incarnation : nodes_.ready()) {
    if (is_unwanted(nodes_.at(incarnation))) unwanted.push_back(incarnation);
  }
  for (Incarnation incarnation : unwanted) {
    const Node& node = nodes_.at(incarnation);
    const std::string why = "job '" + options_.run_id +
                            "' has all the nodes that --nnodes allows, and this agent was given no "
                            "--rdzv-id to wait for it as a spare";
    refuse_unwanted(node, why, state_.round, nodes_, effects);
    on_node_lost(incarnation, StopCause::NodeLeft, why, effects);
  }
}

// ---------------------------------------------------------------- recovery

void Job::restore_persisted_state(const control::PersistedJobState& state) {
  recovery_.restore(state, {state_, failures_, formation_});
  if (state.decided) {  // nodes that have missed the result get it
    phase_ = Phase::Ended;
    result_.decide(*state.decided);
  } else if (is_recovering()) {
    phase_ = Phase::Recovering;
  }
}

// No node can report anything newer: the job continues as if this coordinator had formed the round.
void Job::resume_job(Instant now, Effects& effects) {
  const Recovery known = recovery_.close();
  if (known.is_result_unconfirmed()) {  // its reporter ends without us, and the others begin anew
    phase_ = Phase::WaitingForNodes;
    log_warning(effects, "unconfirmed_result", "no other node confirms the outcome of the job");
    return nodes_.disconnect_all(effects);
  }
  const bool has_round = round() > RoundNumber();
  phase_ = has_round ? Phase::Running : Phase::WaitingForNodes;
  if (has_round) recovery_.on_continued(known.newest().term);
  state_.standby.on_recovered(known.newest(), options_.is_standby);
  if (known.result()) nodes_.disconnect_without(state_.job_key, effects);  // not of this job (R9)
  for (auto& [incarnation, node] : nodes_) {
    node.heard_at = now;  // its lease begins
    confirm_registration(node, effects);
  }
  leases_.restart(now);
  if (known.result()) return finish_job(*known.result(), effects);
  log_info(effects, "recovered",
           "continuing job '" + options_.run_id + "' from round " + std::to_string(round().value) +
               ": " + std::to_string(known.seen_count()) + " of " +
               text::count(static_cast<size_t>(known.newest().group_size), "node") + " came back");
  if (known.must_stop()) {
    if (known.has_loss()) charge_loss("a node was lost with its coordinator");
    request_stop(StopCause::NodeLost, "its coordinator was lost, and not all of it is left",
                 effects);
  }
  place_all_nodes(now, effects);
  if (phase_ == Phase::Running && state_.round.are_all_done()) {  // R8
    finish_job(control::JobResult{true, ""}, effects);
  }
}

// The worker leases come last: with a lease, a node that has not started the workers of an older
// round yet would start them.
void Job::place_all_nodes(Instant now, Effects& effects) {
  for (const auto& [incarnation, node] : nodes_) {
    if (state_.round.is_member(incarnation)) {
      if (node.is_draining()) request_drain(node, effects);
    } else if (node.has_workers() || node.worker_phase == Node::WorkerPhase::Done) {
      stop_stale_workers(node, effects);
    } else {
      send_wait(node, false, effects);
    }
  }
  for (auto& [incarnation, node] : nodes_) {
    if (!node.unanswered) continue;
    send(node,
         control::Pong{*std::exchange(node.unanswered, std::nullopt), leases_.worker_lease(now)},
         effects);
  }
}

// ---------------------------------------------------------------- excluded hosts

void Job::exclude_faulty_hosts(Effects& effects) {
  const std::vector<std::string> excluded =
      count_faults_of_round(stop_.last().cause, job_spec_, nodes_, state_, failures_);
  apply_exclusions(effects);
  for (const std::string& host : excluded) warn_of_exclusion(host, effects);
}

void Job::warn_of_exclusion(const std::string& host, Effects& effects) const {
  log_warning(effects, "host_excluded", exclusion_text(host, job_spec_, nodes_, state_, failures_));
}

void Job::apply_exclusions(Effects& effects) {
  if (!state_.hosts.take_change() || has_job_result()) return;
  for (auto& [incarnation, node] : nodes_) {
    const bool is_excluded = state_.hosts.is_excluded(node.id.name);
    const bool is_news = std::exchange(node.is_excluded, is_excluded) != is_excluded;
    nodes_.update_ready(node);
    send_records(node, effects);
    if (is_news && !node.has_workers()) send_wait(node, false, effects);
  }
}

void Job::on_node_check(Node& node, const control::NodeCheck& check, Effects& effects) {
  const bool had_failed = node.has_failed_check();
  node.facts.node_check = check;
  if (!had_failed) count_failed_check(node, effects);
}

void Job::count_failed_check(const Node& node, Effects& effects) {
  if (!node.has_failed_check()) return;
  const std::string& why = node.facts.node_check.why;
  log_warning(effects, "node_check", node.id.name + " has failed its node check: " + why);
  if (state_.hosts.count(node.id.name, HostFault::FailedCheck, why)) {
    warn_of_exclusion(node.id.name, effects);
  }
}

// ---------------------------------------------------------------- rounds

void Job::advance(Instant now, Effects& effects) {
  apply_exclusions(effects);
  if (recovery_.is_over(now, state_.round)) {
    resume_job(now, effects);
    grow_if_due(now, effects);
  }
  const bool is_over = phase_ == Phase::Stopping && stop_.is_over();
  if (is_over) end_round(now, effects);
  // A spare takes the place of an unusable node. Without one the job ends, so that its scheduler
  // can start it elsewhere.
  if (phase_ == Phase::WaitingForNodes && !unusable_node_.empty() &&
      nodes_.usable_count(state_.hosts) < job_spec_.min_nodes) {
    fail_job(unusable_node_ + ", and " + why_no_round(), false, effects);
  }
  if (phase_ == Phase::WaitingForNodes) try_form(now, effects);
  const bool waits = has_too_few_ready() || formation_.is_delayed();
  if (is_over && phase_ == Phase::WaitingForNodes && waits) {
    for (Incarnation waiting : nodes_.ready()) send_wait(nodes_.at(waiting), false, effects);
  }
  turn_unwanted_away(effects);
  if (phase_ == Phase::Finishing && result_.is_complete()) {
    phase_ = Phase::Ended;
    for (const auto& [incarnation, node] : nodes_) send(node, control::Bye{}, effects);
  }
}

// Sends one stop to all members (R3). The round is over when each has stopped or is gone (R2).
void Job::request_stop(StopCause cause, const std::string& why, Effects& effects) {
  recovery_.require_stop();
  if (phase_ != Phase::Running) return;
  phase_ = Phase::Stopping;
  log_info(effects, "stop", "round " + std::to_string(round().value) + " stops: " + why);
  stop_.begin(stop_of_round(cause, why), state_.round, nodes_, effects);
}

void Job::end_round(Instant now, Effects& effects) {
  phase_ = Phase::WaitingForNodes;
  report_waiting_at_ = now + options_.wait_reminder_interval;
  formation_.restart_link_checks(nodes_);
  exclude_faulty_hosts(effects);
  formation_.on_round_over(now, stop_.last().cause, nodes_.progress(), state_.past_failures);
  failures_.end_round(round(), state_.budgets, nodes_.progress(), state_.past_failures);
  if (failures_.is_job_failing()) {
    return finish_job(failures_.job_result(state_.round.world_size()), effects);
  }
  // Everything is saved and no round can follow: the remaining nodes need not wait for others.
  const bool can_follow = !has_too_few_ready() && (!is_host_leaving_ || has_successor());
  if (requested_stop_.is_saved_drain() && !can_follow) {
    fail_job(requested_stop_.drained_by() + " was asked to stop", true, effects);
  }
}

// The node in this process is ending, and another process leads the job from then on.
RoundFormation::JobView Job::formation_view() const {
  const bool is_leaving = is_exiting_ || (is_host_leaving_ && has_successor());
  return {phase_, nodes_, state_, is_leaving};
}

void Job::grow_if_due(Instant now, Effects& effects) {
  if (now < formation_.growth_deadline(formation_view())) return;
  formation_.on_growth(now);
  request_stop(StopCause::Growth, "a node joins", effects);
}

void Job::try_form(Instant now, Effects& effects) {
  formation_.retry_link_checks(now, nodes_);
  if (has_too_few_ready() || is_shutting_down()) {
    formation_.on_too_few_nodes();
    formation_.cancel_link_checks();
    if (report_waiting_at_.is_never() && !nodes_.is_empty()) {
      report_waiting_at_ = now + options_.wait_reminder_interval;
    }
    return;
  }
  const LinkChecks::JobView links{nodes_, state_.hosts, state_.admin.max_nodes()};
  if (!formation_.is_due(now, formation_view(), links, effects)) return;
  for (const std::string& host : formation_.take_excluded()) warn_of_exclusion(host, effects);
  apply_exclusions(effects);
  if (has_too_few_ready()) {
    formation_.on_too_few_nodes();
    return report_waiting(now, effects);
  }
  formation_.on_forming(now);
  form(effects);
}

void Job::begin_round(RoundNumber number) {
  phase_ = Phase::Running;
  state_.round = Round(number);
  formation_.on_too_few_nodes();
  report_waiting_at_ = Instant::never();
  failures_.begin_round();
  requested_stop_.end();
  unusable_node_.clear();
}

void Job::form(Effects& effects) {
  std::vector<Node*> ready;
  RoundNumber newest = round();
  for (Incarnation incarnation : nodes_.ready()) {
    ready.push_back(&nodes_.at(incarnation));
    newest = std::max(newest, ready.back()->facts.round);
  }
  const std::vector<Node*> ranked =
      rank_nodes(ready, state_.admin.max_nodes(), job_spec_.has_fixed_ranks);
  std::vector<const Node*> newcomers;
  std::ranges::copy_if(ranked, std::back_inserter(newcomers),
                       [](const Node* node) { return !node->group_rank; });
  begin_round(RoundNumber(newest.value + 1));
  const int64_t store_port = formation_.store_port();
  const std::vector<control::RankAssignment> assignments =
      state_.assign(ranked, job_spec_, store_port, nodes_, options_.is_standby);
  if (const auto& resume = state_.snapshots.resume()) {
    log_info(effects, "resume",
             "round " + std::to_string(round().value) + " resumes from the snapshot of step " +
                 std::to_string(resume->step));
  }
  for (size_t i = 0; i < ranked.size(); ++i) {
    ranked[i]->worker_phase = Node::WorkerPhase::Starting;
    state_.round.add(ranked[i]->id.incarnation, assignments[i]);
    nodes_.remove_ready(*ranked[i]);
  }
  persist(effects);
  effects.push_back(ServeStore{options_.run_id, round(), store_port});
  for (size_t i = 0; i < ranked.size(); ++i) send(*ranked[i], assignments[i], effects);
  for (const Node* node : newcomers) send_records(*node, effects);
  for (const auto& [incarnation, node] : nodes_) {
    const bool is_left = node.is_ready() || !why_left_out(node, state_.hosts).empty();
    const bool is_spare = is_left && !state_.round.is_member(incarnation);
    if (is_spare && !is_unwanted(node)) send_wait(node, false, effects);
  }
  formation_.on_formed(state_.round.size(), effects);
  log_info(effects, "round",
           "round " + std::to_string(round().value) + " of job '" + options_.run_id +
               "': " + text::count(ranked.size(), "node") + ", " +
               text::count(static_cast<size_t>(state_.round.world_size()), "worker"));
}

void Job::on_store_port(Instant now, int64_t port, Effects& effects) {
  formation_.on_store_port(port);
  if (port != 0) return advance(now, effects);
  log_warning(effects, "no_store_port", "no port for the next round's store could be opened");
  if (phase_ != Phase::WaitingForNodes) return;  // a round runs, which needs none
  fail_job("the coordinator could not open a port for the round's store", false, effects);
  advance(now, effects);
}

// Sends the result to all connected nodes; each keeps it and acknowledges (R9).
void Job::finish_job(control::JobResult result, Effects& effects) {
  result_.decide(std::move(result));
  phase_ = Phase::Finishing;
  formation_.end_delay();
  persist(effects);
  result_.send_to_all(nodes_, state_.standby.node(nodes_), effects);
  report_waiting_at_ = Instant::never();
  effects.push_back(DropStores{options_.run_id});
  log_info(effects, "job_result",
           job_result().is_success ? "all workers ended well" : job_result().failure_summary);
}

void Job::report_waiting(Instant now, Effects& effects) {
  report_waiting_at_ = now + options_.wait_reminder_interval;
  for (const auto& [incarnation, node] : nodes_) {
    const bool waits = !state_.round.is_member(incarnation) || phase_ == Phase::WaitingForNodes;
    if (waits) send_wait(node, true, effects);
  }
}

// The state is persisted before any node receives it, so the next elected coordinator knows it.
void Job::persist(Effects& effects) const {
  if (!options_.leader_lease) return;
  control::PersistedJobState state = state_.to_persist();
  if (has_job_result()) state.decided = job_result();
  effects.push_back(PersistState{std::move(state)});
}

}  // namespace cpprun
