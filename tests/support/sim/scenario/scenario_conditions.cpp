#include "tests/support/sim/scenario/scenario_conditions.hpp"

#include <algorithm>

#include "common/text.hpp"
#include "tests/support/sim/scenario/scenario_parser.hpp"

namespace cpprun::sim {

Node* find_node(Cluster& cluster, const std::string& name) {
  auto& all = cluster.nodes();
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    if ((*it)->id().name == name || (*it)->label() == name) return it->get();
  }
  return nullptr;
}

namespace {

std::optional<bool> holds_for_node(const Node& node, const Words& rest) {
  if (auto found = match("ended with ...", rest)) {
    using How = agent::Finish::How;
    if (!node.finish()) return false;
    const std::string& how = found->back();
    return (how == "success" && node.finish()->how == How::Success) ||
           (how == "failure" && node.finish()->how == How::Failure) ||
           (how == "error" && node.finish()->how == How::Error) ||
           (how == "signal" && node.finish()->how == How::Signal) ||
           (how == "resumable" && node.finish()->how == How::Stopped) ||
           (how == "unusable" && node.finish()->how == How::Unusable);
  }
  if (match("waits", rest)) return node.is_running() && node.live_workers() == 0;
  if (match("has workers", rest)) return node.live_workers() > 0;
  if (match("leads", rest)) return node.is_running() && node.believes_it_leads();
  if (match("is gone", rest)) return !node.is_running();
  return std::nullopt;
}

bool runs_exactly_on(Cluster& cluster, int64_t round, const Words& names) {
  for (const auto& node : cluster.nodes()) {
    bool is_named = std::find(names.begin(), names.end(), node->label()) != names.end();
    bool runs = node->live_workers() > 0 && node->assignment()->round == RoundNumber(round);
    if (runs != is_named) return false;
  }
  return true;
}

// The nodes of the newest round, in the order of their group ranks.
bool has_ranks(Cluster& cluster, const Words& names) {
  for (size_t rank = 0; rank < names.size(); ++rank) {
    Node* node = find_node(cluster, names[rank]);
    if (node == nullptr || !node->assignment()) return false;
    if (node->assignment()->group_rank != static_cast<int64_t>(rank)) return false;
  }
  return true;
}

}  // namespace

std::optional<bool> holds(Cluster& cluster, const Words& condition) {
  if (auto found = match("round NN runs", condition)) {
    const Job* job = cluster.job();
    std::optional<int64_t> round = text::parse_int((*found)[0]);
    if (job == nullptr || !round || job->round() != RoundNumber(*round)) return false;
    return job->phase() == Job::Phase::Running &&
           std::all_of(job->nodes().begin(), job->nodes().end(), [](const auto& entry) {
             return entry.second.worker_phase != cpprun::Node::WorkerPhase::Starting;
           });
  }
  if (auto found = match("round NN runs on ...", condition)) {
    std::optional<int64_t> round = text::parse_int((*found)[0]);
    return round && runs_exactly_on(cluster, *round, Words(found->begin() + 1, found->end()));
  }
  if (auto found = match("ranks ...", condition)) return has_ranks(cluster, *found);
  if (auto found = match("restarts NN", condition)) {
    return cluster.job() != nullptr &&
           std::to_string(cluster.job()->budget().used()) == (*found)[0];
  }
  if (auto found = match("HOST is excluded", condition)) {
    return cluster.job() != nullptr && cluster.job()->hosts().is_excluded((*found)[0]);
  }
  if (match("no workers live", condition)) return cluster.checks().live_workers() == 0;
  if (match("job is decided", condition)) {
    return cluster.job() != nullptr && cluster.job()->has_job_result();
  }
  Node* node = find_node(cluster, condition.front());
  if (node != nullptr) {
    return holds_for_node(*node, Words(condition.begin() + 1, condition.end()));
  }
  return std::nullopt;
}

}  // namespace cpprun::sim
