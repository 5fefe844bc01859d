#include "rendezvous/core/coordinator.hpp"

#include <algorithm>

#include "common/check.hpp"
#include "common/limits.hpp"

namespace cpprun {

void Coordinator::on_connected(SessionId session, SessionFacts facts) {
  bool is_new =
      sessions_.try_emplace(session, Session{std::move(facts), std::nullopt, false}).second;
  CPPRUN_CHECK(is_new);
}

void Coordinator::refuse(SessionId session, const std::string& why, Effects& effects) const {
  effects.push_back(Note{Note::Level::Info, "refused", why});
  effects.push_back(Send{session, control::Refused{why}});
  effects.push_back(Close{session, false});
}

void Coordinator::on_message(Instant now, SessionId id, const control::AgentMessage& message,
                             Effects& effects) {
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
  if (const auto* facts = std::get_if<control::Register>(&message)) {
    on_register(now, id, session, *facts, effects);
  } else if (!session.is_registered) {
    refuse(id, "an agent must register before it says anything else", effects);
  } else if (auto job = jobs_.find(session.hello->run_id);
             job != jobs_.end() && job->second->has_session(id)) {
    job->second->on_message(now, id, message, effects);
  }  // else an older connection, or one of a node that left or was lost: changes nothing (R4)
  if (auto still = sessions_.find(id); still != sessions_.end() && still->second.hello) {
    forget_if_over(std::string(still->second.hello->run_id), effects);
  }
}

void Coordinator::on_hello(SessionId id, Session& session, const control::Hello& hello,
                           Effects& effects) {
  if (hello.protocol != control::kProtocolVersion) {
    refuse(id,
           "this agent is cpprun " + hello.version + " and speaks version " +
               std::to_string(hello.protocol) + " of the control protocol, the coordinator on " +
               options_.host + " is cpprun " CPPRUN_VERSION " and speaks version " +
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

void Coordinator::on_register(Instant now, SessionId id, Session& session,
                              const control::Register& message, Effects& effects) {
  if (session.is_registered) {
    refuse(id, "a second register on one connection", effects);
    return;
  }
  const control::Terms& terms = message.terms;
  bool is_sane = terms.min_nodes >= 1 && terms.max_nodes >= terms.min_nodes &&
                 terms.max_nodes <= limits::kNodesPerJob && terms.max_restarts >= 0 &&
                 terms.lease >= limits::kLeaseMin && terms.heartbeat > Duration{} &&
                 message.epoch <= Epoch(INT64_MAX / 2) &&
                 message.round <= RoundNumber(INT64_MAX / 2);
  if (!is_sane) {
    refuse(id, "the agent's terms make no sense (nodes, restarts, lease or round out of range)",
           effects);
    return;
  }
  Membership* job = job_for(session.hello->run_id, terms, id, effects);
  if (job == nullptr) return;
  job->on_register(now, id, *session.hello, message, session.facts, effects);
  session.is_registered = job->has_session(id);
}

Membership* Coordinator::job_for(const std::string& run_id, const control::Terms& terms,
                                 SessionId session, Effects& effects) {
  if (auto it = jobs_.find(run_id); it != jobs_.end()) return it->second.get();
  for (const auto& [other_id, other] : jobs_) {
    if (!terms.is_store_on_main_port || !other->terms().is_store_on_main_port) continue;
    refuse(session,
           "the job '" + other_id + "' already serves its workers' store at this port; give job '" +
               run_id + "' a --master-port of its own",
           effects);
    return nullptr;
  }
  MembershipOptions options{run_id, options_.host, Epoch(options_.epoch.value + jobs_begun_++),
                            options_.embedded};
  auto made = std::make_unique<Membership>(std::move(options), terms, effects);
  return jobs_.emplace(run_id, std::move(made)).first->second.get();
}

void Coordinator::on_closed(Instant now, SessionId id, Membership::Ending how, Effects& effects) {
  auto it = sessions_.find(id);
  if (it == sessions_.end()) return;
  Session session = std::move(it->second);
  sessions_.erase(it);
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
  jobs_.erase(it);
  effects.push_back(DropStores{run_id});
}

void Coordinator::on_time(Instant now, Effects& effects) {
  std::vector<std::string> touched;
  for (auto& [run_id, job] : jobs_) {
    if (job->next_deadline() > now) continue;
    job->on_time(now, effects);
    touched.push_back(run_id);
  }
  for (const std::string& run_id : touched) forget_if_over(run_id, effects);
}

Instant Coordinator::next_deadline() const {
  Instant next = Instant::never();
  for (const auto& [run_id, job] : jobs_) next = std::min(next, job->next_deadline());
  return next;
}

}  // namespace cpprun
