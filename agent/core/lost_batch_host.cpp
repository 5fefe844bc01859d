#include "agent/core/lost_batch_host.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "common/limits/agent.hpp"
#include "common/node_list.hpp"
#include "common/text.hpp"

namespace cpprun::agent {
namespace {

using What = RequeueAdvice::What;

// The fields "Name=value", which blanks and line ends separate.
std::map<std::string, std::string> fields_of(std::string shown) {
  std::ranges::replace(shown, '\n', ' ');
  std::map<std::string, std::string> fields;
  for (const std::string& word : text::split(shown, ' ')) {
    const size_t equals = word.find('=');
    if (equals != std::string::npos)
      fields.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
  return fields;
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

RequeueAdvice requeue_advice(const ClusterConfig& cluster, int min_nodes,
                             const std::string& shown) {
  std::map<std::string, std::string> fields = fields_of(shown);
  const Result<std::vector<std::string>> left = expand_node_list(fields["NodeList"]);
  const bool is_this_run = fields["JobId"] == cluster.job_id &&
                           fields["Restarts"] == std::to_string(cluster.restarts) &&
                           fields["JobState"] == "RUNNING";
  if (!is_this_run || !left) return {};
  const std::string& batch_host = fields["BatchHost"];
  if (batch_host.empty() || fields["BatchFlag"] == "0") return {What::GiveUp};
  if (holds(*left, batch_host)) return {};
  const auto is_left = [&](const std::string& name) { return holds(*left, name); };
  const auto first = std::ranges::find_if(cluster.step_nodes, is_left);
  if (first == cluster.step_nodes.end() || *first != cluster.node_name) return {};
  const auto lost = std::ranges::count_if(cluster.step_nodes, std::not_fn(is_left));
  if (lost >= min_nodes) {
    return {What::GiveUp, "Slurm has taken " + batch_host +
                              ", the node of the batch script, out "
                              "of job " +
                              cluster.job_id + ", but with --nnodes=" + std::to_string(min_nodes) +
                              ":... the job might still run there; look, "
                              "and then enter `scontrol requeue " +
                              cluster.job_id + "`"};
  }
  return {What::Requeue, "Slurm has taken " + batch_host +
                             ", the node of the batch script, out of job " + cluster.job_id};
}

bool may_ask_for_requeue(const ClusterConfig& cluster) {
  if (!cluster.requeues_max || cluster.restarts >= *cluster.requeues_max) return false;
  const auto own = std::ranges::find(cluster.step_nodes, cluster.node_name);
  const auto place = own - cluster.step_nodes.begin();
  return own != cluster.step_nodes.end() && place > 0 && place <= limits::kBatchHostWatchers;
}

}  // namespace cpprun::agent
