#include "rendezvous/server/log_relay.hpp"

#include <utility>
#include <vector>

#include "common/limits/log_files.hpp"

namespace cpprun {
namespace {

control::LogReply no_answer(const std::string& why) {
  control::LogReply reply;
  reply.why = why;
  return reply;
}

bool can_read(const Node& node) { return node.is_connected() && node.facts.reads_log_files; }

}  // namespace

Status LogRelay::admit(SessionId tool, const std::string& run_id) {
  if (tools_.size() >= limits::kLogReaders) {
    return Error{ErrorKind::Refused,
                 std::to_string(tools_.size()) + " others read log files; try again later"};
  }
  const bool names_none = run_id.empty() && core_.jobs().size() != 1;
  const std::string meant = run_id.empty() && !names_none ? core_.jobs().begin()->first : run_id;
  if (names_none || !core_.jobs().contains(meant)) {
    return Error{ErrorKind::Refused, "there is no job '" + run_id + "' here"};
  }
  tools_[tool] = Tool{++last_tool_, meant};
  return {};
}

const Job* LogRelay::job_of(const Tool& tool) const {
  const auto job = core_.jobs().find(tool.run_id);
  return job == core_.jobs().end() ? nullptr : job->second.get();
}

control::LogReply LogRelay::list_of(const Tool& tool, const control::LogRequest& request) const {
  control::LogReply list;
  const Job* job = job_of(tool);
  list.is_job_over = job == nullptr || job->has_job_result();
  if (job == nullptr) return list;
  int64_t number = 0;
  for (const auto& [incarnation, node] : job->nodes()) {
    const bool is_wanted = number++ >= request.skip && list.nodes.size() < limits::kLogNodes;
    if (!is_wanted) continue;
    list.nodes.push_back({node.id, node.group_rank.value_or(-1), can_read(node)});
  }
  list.nodes_in_all = number;
  return list;
}

void LogRelay::on_request(SessionId tool, control::LogRequest request) {
  Tool& asking = tools_.at(tool);
  const Pending pending{tool, {}, request.id};
  if (request.node == Incarnation()) return answer(pending, list_of(asking, request));
  const Job* job = job_of(asking);
  const auto node = job == nullptr ? std::map<Incarnation, Node>::const_iterator()
                                   : job->nodes().find(request.node);
  if (job == nullptr || node == job->nodes().end() || !can_read(node->second)) {
    return answer(pending, no_answer("the node has no connection to the coordinator"));
  }
  if (asking.requests >= limits::kLogRequests) {
    return answer(pending, no_answer("too many requests are on their way; ask again"));
  }
  ++asking.requests;
  request.id = ++last_id_;
  request.reader = asking.number;
  request.run_id.clear();
  request.mac.clear();
  pending_[request.id] = {tool, *node->second.session, pending.id};
  send_(*node->second.session, std::move(request));
}

void LogRelay::answer(const Pending& pending, control::LogReply reply) {
  reply.id = pending.id;
  send_(pending.tool, std::move(reply));
}

void LogRelay::on_reply(SessionId agent, control::LogReply reply) {
  const auto found = pending_.find(reply.id);
  if (found == pending_.end() || found->second.agent != agent) return;
  const Pending pending = found->second;
  pending_.erase(found);
  const auto tool = tools_.find(pending.tool);
  if (tool == tools_.end()) return;
  --tool->second.requests;
  reply.nodes.clear();  // only the coordinator knows them
  answer(pending, std::move(reply));
}

void LogRelay::on_closed(SessionId session) {
  tools_.erase(session);
  std::vector<int64_t> ended;
  for (const auto& [id, pending] : pending_) {
    if (pending.tool == session || pending.agent == session) ended.push_back(id);
  }
  for (const int64_t id : ended) {
    const Pending pending = pending_.extract(id).mapped();
    const auto tool = tools_.find(pending.tool);
    if (tool == tools_.end()) continue;
    --tool->second.requests;
    answer(pending, no_answer("the connection of the node has ended"));
  }
}

}  // namespace cpprun
