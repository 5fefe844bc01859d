#include "rendezvous/coordinator/coordinator.hpp"

#include <algorithm>
#include <utility>

#include "common/check.hpp"
#include "common/endpoint.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "common/version.hpp"
#include "rendezvous/coordinator/registration_checks.hpp"
#include "rendezvous/coordinator/rounds/ranking.hpp"
#include "rendezvous/protocol/sanitize.hpp"

namespace cpprun {

void Coordinator::on_connected(SessionId session, SessionAddresses facts) {
  bool is_new =
      sessions_.try_emplace(session, Session{std::move(facts), std::nullopt, false}).second;
  CPPRUN_CHECK(is_new);
}

void Coordinator::refuse(SessionId session, const std::string& why, Effects& effects) const {
  log_warning(effects, "refused", "refused an agent: " + why);
  cpprun::refuse(effects, session, control::Refused{why});
}

void Coordinator::refuse_other_job(SessionId session, const std::string& only,
                                   Effects& effects) const {
  const std::string why = "the coordinator here leads the job '" + only + "' and no other";
  const std::string text = "refused an agent: " + why;
  // Agents of other jobs look for their coordinator at the ports that both jobs have.
  options_.leads_own_job_alone ? log_info(effects, "refused", text)
                               : log_warning(effects, "refused", text);
  cpprun::refuse(effects, session, control::Refused{why, {}, true});
}

void Coordinator::on_message(Instant now, SessionId id, control::AgentMessage received,
                             Effects& effects) {
  const control::AgentMessage message = control::sanitize(std::move(received));
  auto it = sessions_.find(id);
  if (it == sessions_.end()) return;  // closed meanwhile
  Session& session = it->second;
  if (const auto* hello = std::get_if<control::Hello>(&message)) {
    on_hello(id, session, *hello, effects);
    return;
  }
  if (!session.hello) {
    refuse(id, "the first message of a connection must be a hello", effects);
    return;
  }
  if (const auto* acting = std::get_if<control::AnnounceLeader>(&message)) {
    on_announce_leader(id, session, *acting, effects);
  } else if (const auto* facts = std::get_if<control::Register>(&message)) {
    on_register(now, id, session, *facts, effects);
  } else if (!session.is_registered) {
    refuse(id, "an agent must register before it sends anything else", effects);
  } else if (session.is_of_ended_job) {
    if (std::holds_alternative<control::Ack>(message)) effects.push_back(Send{id, control::Bye{}});
  } else if (auto job = jobs_.find(session.hello->run_id);
             job != jobs_.end() && job->second->has_session(id)) {
    job->second->on_message(now, id, message, effects);
  }  // else an older connection, or a node that left or was lost: ignored (R4)
  if (auto still = sessions_.find(id); still != sessions_.end() && still->second.hello) {
    forget_if_over(std::string(still->second.hello->run_id), effects);
  }
}

void Coordinator::on_hello(SessionId id, Session& session, const control::Hello& hello,
                           Effects& effects) {
  if (!is_sane(hello)) {
    refuse(id,
           "the agent's version, run id or node name holds control characters, or its version is "
           "too long",
           effects);
  } else if (hello.protocol != control::kProtocolVersion) {
    refuse(id,
           "this agent is cpprun " + hello.version + " and speaks version " +
               std::to_string(hello.protocol) + " of the control protocol, the coordinator on " +
               options_.host + " is cpprun " + version() + " and speaks version " +
               std::to_string(control::kProtocolVersion) + "; use the same cpprun on all nodes",
           effects);
  } else if (hello.run_id.empty() || hello.run_id.size() > limits::kNameBytes ||
             hello.node.name.size() > limits::kNameBytes) {
    refuse(id, "the run id or the node's name is empty or too long", effects);
  } else if (session.hello) {
    refuse(id, "a second hello on one connection", effects);
  } else {
    session.hello = hello;
  }
}

// An id is no secret: it stands in rank assignments.
bool Coordinator::is_proven(const control::Hello& hello) const {
  if (!options_.node_id_of) return true;
  return hello.token.size() <= limits::kNodeKeyBytes &&
         options_.node_id_of(hello.token) == hello.node.incarnation;
}

void Coordinator::on_register(Instant now, SessionId id, Session& session,
                              const control::Register& message, Effects& effects) {
  if (session.is_registered) {
    refuse(id, "a second register on one connection", effects);
    return;
  }
  if (!is_proven(*session.hello)) {
    refuse(id, "it shows no key for its node id", effects);
    return;
  }
  if (!is_sane(message)) {
    refuse(id, "the agent's terms make no sense (nodes, restarts, lease or round out of range)",
           effects);
    return;
  }
  if (redirect_if_led_elsewhere(id, session.hello->run_id, effects)) {
    session.is_registered = true;  // its later messages are ignored
    return;
  }
  if (is_of_forgotten_job(message)) {
    refuse(id,
           "the run of job '" + session.hello->run_id +
               "' in which this agent took part is over, and a later one has ended too; its "
               "outcome is not known any more, start the agent again to begin a new run",
           effects);
    return;
  }
  if (const control::JobResult* result = missed_result(session.hello->run_id, message)) {
    effects.push_back(Send{id, *result});
    session.is_registered = session.is_of_ended_job = true;
    return;
  }
  Job* job = job_for(session.hello->run_id, message, id, effects);
  if (job == nullptr) return;
  job->on_register(now, id, *session.hello, message, session.facts, effects);
  session.is_registered = job->has_session(id);
}

void Coordinator::on_announce_leader(SessionId id, const Session& session,
                                     const control::AnnounceLeader& message, Effects& effects) {
  const bool is_sane = is_host(message.address) && is_short(message.address) && message.port > 0 &&
                       is_port(message.port) && message.term > Term();
  if (!is_sane || session.is_registered) {
    refuse(id, "an address from which no node can lead a job", effects);
    return;
  }
  const std::string& run_id = session.hello->run_id;
  const auto job = jobs_.find(run_id);
  const bool is_here = job != jobs_.end() && !job->second->is_over();
  const bool may_redirect = !is_here || job->second->can_be_redirected();
  const bool is_true = is_believed(run_id, message);
  if (may_redirect && !is_true) {
    refuse(id, "no node of job '" + run_id + "' confirms that it is led from " + message.address,
           effects);
    return;
  }
  const control::Redirect where{message.term, message.address, message.port};
  effects.push_back(Send{id, where});  // the acknowledgement
  auto [known, is_news] = remote_leaders_.try_emplace(run_id, RemoteLeader{id, where, is_true});
  if (!is_news && known->second.reported_by == id) return;
  if (!is_news && known->second.is_believed && !is_true) return;
  known->second = RemoteLeader{id, where, is_true};
  if (!is_here) return;
  if (may_redirect) {
    job->second->redirect_members(where, effects);
  } else {
    log_warning(effects, "two_jobs",
                "job '" + run_id + "' is led from here and from " + message.address +
                    " too: agents of it were started anew while others continued");
  }
}

// Another program could redirect agents to an address of its own: only members know the job's key.
bool Coordinator::is_believed(const std::string& run_id,
                              const control::AnnounceLeader& message) const {
  if (!options_.is_leader_of) return true;
  const auto job = jobs_.find(run_id);
  const std::string key = job == jobs_.end() ? "" : job->second->job_key();
  if (key.empty()) return !options_.needs_known_leader;
  return options_.is_leader_of(key, run_id, message);
}

bool Coordinator::redirect_if_led_elsewhere(SessionId id, const std::string& run_id,
                                            Effects& effects) const {
  auto it = remote_leaders_.find(run_id);
  if (it == remote_leaders_.end() || !it->second.is_believed) return false;
  auto job = jobs_.find(run_id);
  if (job != jobs_.end() && !job->second->is_over()) return false;  // both jobs continue
  effects.push_back(Send{id, it->second.where});
  return true;
}

std::optional<Term> Coordinator::ended_job_of(SessionId session) const {
  const auto it = sessions_.find(session);
  if (it == sessions_.end() || !it->second.is_of_ended_job) return std::nullopt;
  return ended_job()->term;
}

const Job* Coordinator::job_of(SessionId session) const {
  const auto it = sessions_.find(session);
  if (it == sessions_.end() || !it->second.is_registered) return nullptr;
  const auto job = jobs_.find(it->second.hello->run_id);
  const bool is_its = job != jobs_.end() && job->second->has_session(session);
  return is_its ? job->second.get() : nullptr;
}

bool Coordinator::may_exit() const {
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [](const auto& entry) { return entry.second->may_exit(); });
}

void Coordinator::lead_until(Instant until) {
  until_ = until;
  for (auto& [run_id, job] : jobs_) job->lead_until(until);
}

bool Coordinator::is_idle() const {
  return std::all_of(jobs_.begin(), jobs_.end(),
                     [](const auto& entry) { return entry.second->is_idle(); });
}

std::string Coordinator::only_job() const {
  if (options_.leads_own_job_alone) return options_.own_job;
  return options_.leader_lease ? options_.leader_lease->run_id : options_.standby_of;
}

// The persisted state, if it has the result of a job. nullptr: it has none.
const control::PersistedJobState* Coordinator::ended_job() const {
  if (!options_.leader_lease || !options_.leader_lease->facts) return nullptr;
  const control::PersistedJobState& state = *options_.leader_lease->facts;
  return state.decided ? &state : nullptr;
}

// The result that the persisted state has for this agent of the ended job, if the next job with its
// run id has begun. That job would take the agent for one of its own that continues.
const control::JobResult* Coordinator::missed_result(const std::string& run_id,
                                                     const control::Register& message) const {
  const control::PersistedJobState* state = ended_job();
  const auto job = jobs_.find(run_id);
  if (state == nullptr || job == jobs_.end() || job->second->has_led(message)) return nullptr;
  const bool is_of_it = message.term >= state->first_term && message.term <= state->term;
  return is_of_it ? &*state->decided : nullptr;
}

// It took part in a job before the one whose result the persisted state has.
bool Coordinator::is_of_forgotten_job(const control::Register& message) const {
  const control::PersistedJobState* state = ended_job();
  return state != nullptr && message.assignment && message.term < state->first_term;
}

// The agents of an ended job get its result; other agents begin a new job.
std::optional<LeaderLease> Coordinator::leader_lease_for(const control::Register& first) const {
  if (!options_.leader_lease) return std::nullopt;
  LeaderLease leader_lease{options_.leader_lease->run_id, std::nullopt, until_};
  const std::optional<control::PersistedJobState>& facts = options_.leader_lease->facts;
  const bool is_of_it = facts && (!facts->decided || first.term >= facts->first_term);
  if (jobs_begun_ == 0 && is_of_it) leader_lease.facts = facts;
  return leader_lease;
}

void Coordinator::on_host_agent_ended(Instant now, bool is_exiting, Effects& effects) {
  if (options_.leader_lease) return;  // the next elected coordinator begins the next job
  is_leaving_ = true;
  std::erase_if(jobs_, [&](const auto& entry) {
    const bool is_new = !entry.second->is_over() && entry.second->is_new();
    if (!is_new) return false;
    entry.second->disconnect_all(effects);
    effects.push_back(DropStores{entry.first});
    return true;
  });
  for (const auto& [run_id, job] : jobs_) job->on_host_agent_ended(now, is_exiting, effects);
}

// The newcomer is too early: the job with its run id has ended and still has nodes, or this process
// is about to exit.
bool Coordinator::must_wait_for_next_job(const Job* job, SessionId session,
                                         const control::Register& message) const {
  const control::Hello& hello = *sessions_.at(session).hello;
  const Incarnation node = hello.node.incarnation;
  const bool is_own = !options_.own_job.empty() && hello.run_id == options_.own_job;
  if (job == nullptr) return is_leaving_ || (is_own && options_.embedded != node);
  if (job->nodes().contains(node) || job->has_led(message)) return false;
  return job->is_over() ? is_leaving_ : job->has_job_result();
}

Job* Coordinator::job_for(const std::string& run_id, const control::Register& message,
                          SessionId session, Effects& effects) {
  if (const std::string only = only_job(); !only.empty() && only != run_id) {
    refuse_other_job(session, only, effects);
    return nullptr;
  }
  auto it = jobs_.find(run_id);
  if (must_wait_for_next_job(it == jobs_.end() ? nullptr : it->second.get(), session, message)) {
    effects.emplace_back(Close{session, false});
    return nullptr;
  }
  if (it != jobs_.end()) {
    // Agents of an ended job get its result; other agents begin a new job.
    const bool continues =
        options_.leader_lease && !it->second->has_job_result() && !it->second->is_shutting_down();
    if (!it->second->is_over() || continues || it->second->has_led(message)) {
      return it->second.get();
    }
    jobs_.erase(it);
  }
  forget_long_ended();
  if (has_too_many_jobs()) {
    refuse(session,
           "the coordinator on " + options_.host + " leads " +
               std::to_string(limits::kJobsPerServer) +
               " jobs, and that is its limit; end one of them, or give this job a --rdzv-endpoint "
               "of its own",
           effects);
    return nullptr;
  }
  const control::JobSpec& job_spec = message.job_spec;
  for (const auto& [other_id, other] : jobs_) {
    if (other->is_over()) continue;
    if (!job_spec.is_store_on_main_port || !other->job_spec().is_store_on_main_port) continue;
    refuse(session,
           "the job '" + other_id + "' already serves its workers' store at this port; give job '" +
               run_id + "' a --master-port of its own",
           effects);
    return nullptr;
  }
  const bool is_standby =
      !options_.standby_of.empty() && jobs_begun_ == 0;  // a later job is a new one
  std::optional<LeaderLease> leader_lease = leader_lease_for(message);
  JobOptions options{run_id,
                     options_.host,
                     Term(options_.term.value + jobs_begun_++),
                     options_.embedded,
                     options_.wait_reminder_interval,
                     options_.make_secret,
                     options_.term,
                     is_standby,
                     std::move(leader_lease),
                     is_standby ? options_.job_key : "",
                     options_.needs_admin_token,
                     [this, run_id] { return waiting_jobs_but(run_id); }};
  auto made = std::make_unique<Job>(std::move(options), job_spec, effects);
  return jobs_.emplace(run_id, std::move(made)).first->second.get();
}

std::vector<std::string> Coordinator::waiting_jobs_but(const std::string& run_id) const {
  std::vector<std::string> names;
  for (const auto& [name, job] : jobs_) {
    if (name != run_id && job->is_new() && !job->is_over()) {
      names.push_back(name);
    }
  }
  return names;
}

bool Coordinator::has_too_many_jobs() const {
  const auto is_led = [](const auto& entry) { return !entry.second->is_over(); };
  return std::count_if(jobs_.begin(), jobs_.end(), is_led) >= limits::kJobsPerServer;
}

void Coordinator::on_closed(Instant now, SessionId id, Job::Ending how, Effects& effects) {
  auto it = sessions_.find(id);
  if (it == sessions_.end()) return;
  Session session = std::move(it->second);
  sessions_.erase(it);
  std::erase_if(remote_leaders_, [&](const auto& entry) { return entry.second.reported_by == id; });
  if (!session.is_registered) return;
  auto job = jobs_.find(session.hello->run_id);
  if (job == jobs_.end()) return;
  job->second->on_closed(now, id, how, effects);
  forget_if_over(session.hello->run_id, effects);
}

void Coordinator::on_store_port(Instant now, const std::string& run_id, int64_t port,
                                Effects& effects) {
  auto it = jobs_.find(run_id);
  if (it != jobs_.end()) it->second->on_store_port(now, port, effects);
}

void Coordinator::forget_if_over(const std::string& run_id, Effects& effects) {
  auto it = jobs_.find(run_id);
  if (it == jobs_.end() || !it->second->is_over()) return;
  // Under a leader lease the job continues with the next agent, as under the next coordinator
  // (R18).
  const bool is_at_an_end = it->second->has_job_result() || it->second->is_shutting_down();
  if (options_.leader_lease && !is_at_an_end) return;
  // An ended job is kept for nodes that were disconnected when its result was sent.
  if (!is_at_an_end) jobs_.erase(it);
  effects.push_back(DropStores{run_id});
}

void Coordinator::forget_long_ended() {
  auto is_over = [](const auto& entry) { return entry.second->is_over(); };
  auto is_older = [&](const auto& a, const auto& b) {
    return is_over(a) && (!is_over(b) || a.second->term() < b.second->term());
  };
  if (std::count_if(jobs_.begin(), jobs_.end(), is_over) < limits::kEndedJobs) return;
  jobs_.erase(std::min_element(jobs_.begin(), jobs_.end(), is_older));
}

control::AdminReply Coordinator::on_admin_command(Instant now, const std::string& run_id,
                                                  const control::AdminCommand& command,
                                                  const std::string& by, Effects& effects) {
  std::vector<std::string> names;
  Job* only = nullptr;
  for (const auto& [name, job] : jobs_) {
    if (job->is_over() || (!run_id.empty() && name != run_id)) continue;
    names.push_back(name);
    only = job.get();
  }
  if (names.size() > 1) {
    return {command.id, false, "several jobs are here; name one: " + text::join(names, ", ")};
  }
  if (only == nullptr) {
    return {command.id, false,
            run_id.empty() ? "no job is here" : "no job '" + run_id + "' is here"};
  }
  control::AdminReply answer = only->on_admin_command(now, command, by, effects);
  forget_if_over(names.front(), effects);
  return answer;
}

void Coordinator::on_time(Instant now, Effects& effects) {
  std::vector<std::string> touched;
  for (auto& [run_id, job] : jobs_) {
    if (job->is_over() || job->next_deadline() > now) continue;
    job->on_time(now, effects);
    touched.push_back(run_id);
  }
  for (const std::string& run_id : touched) forget_if_over(run_id, effects);
}

Instant Coordinator::next_deadline() const {
  Instant next = Instant::never();
  for (const auto& [run_id, job] : jobs_) {
    if (!job->is_over()) next = std::min(next, job->next_deadline());
  }
  return next;
}

void Coordinator::watch(Duration lasts, Effects& effects) const {
  for (const auto& [run_id, job] : jobs_) {
    for (const auto& [incarnation, node] : job->nodes()) {
      if (!node.is_connected() || !node.facts.reports_progress) continue;
      effects.push_back(Send{*node.session, control::Watch{lasts}});
    }
  }
}

void Coordinator::tail(const JobRank& wanted, Duration lasts, Effects& effects) const {
  const auto job = jobs_.find(wanted.run_id);
  if (job == jobs_.end()) return;
  const std::optional<RankLocation> place =
      place_of(wanted.rank, job->second->assignments(), job->second->nodes());
  if (!place || !place->node->is_connected() || !place->node->facts.reports_log_lines) return;
  effects.push_back(Send{*place->node->session, control::LogTailRequest{place->local_rank, lasts}});
}

}  // namespace cpprun
