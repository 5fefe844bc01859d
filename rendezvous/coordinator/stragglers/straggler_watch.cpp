#include "rendezvous/coordinator/stragglers/straggler_watch.hpp"

#include <algorithm>

#include "common/limits/dashboard.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

std::string milliseconds(int64_t microseconds) {
  constexpr int64_t kTenth = 100;
  const int64_t tenths = (microseconds + kTenth / 2) / kTenth;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " ms";
}

// "rank 3 on n02 computes 48.0 ms a step, the median rank 20.1 ms (16 of its last 20 steps ...)"
std::string text_of(const SlowRankChange& change, const std::string& node) {
  return "rank " + std::to_string(change.rank) + " on " + node + " computes " +
         milliseconds(change.compute_us) + " a step, the median rank " +
         milliseconds(change.median_us) + " (" + std::to_string(change.slow_steps) +
         " of its last " + std::to_string(change.steps) + " steps were slow)";
}

}  // namespace

std::string StragglerWatch::take(const JobView& job, const Node& node,
                                 const control::ComputeTimes& report, Effects& effects) {
  const auto member = job.round.assignments().find(node.id.incarnation);
  const size_t count = report.steps.size();
  const bool is_sound = member != job.round.assignments().end() &&
                        report.round == job.round.number() && report.compute_us.size() == count &&
                        count <= limits::kProgressWorkers &&
                        count <= static_cast<size_t>(std::max<int64_t>(0, node.facts.nproc));
  if (!is_sound) return "";
  if (ranks_.round() != report.round) {
    ranks_.begin_round(report.round);
    acted_on_.clear();
    drained_.clear();
  }
  std::string why;
  for (size_t i = 0; i < count; ++i) {
    const int64_t rank = member->second.base_rank + static_cast<int64_t>(i);
    const auto change = ranks_.add(rank, report.steps[i], report.compute_us[i]);
    if (!change) continue;
    const std::string stops = on_change(job, node, *change, effects);
    if (why.empty()) why = stops;
  }
  return why;
}

bool StragglerWatch::can_continue(const JobView& job, const Node& left_out) const {
  const auto stays = [&](const auto& entry) {
    const Node& node = entry.second;
    return node.id.name != left_out.id.name && node.can_stay() && !drained_.contains(entry.first) &&
           !node.is_excluded && !node.has_failed_check();
  };
  return std::ranges::count_if(job.nodes.all(), stays) >= job.job_spec.min_nodes;
}

std::string StragglerWatch::on_change(const JobView& job, const Node& node,
                                      const SlowRankChange& change, Effects& effects) {
  const StragglerPolicy policy = job.job_spec.stragglers;
  std::string what = text_of(change, node.id.name);
  std::string action;
  bool excludes = false;
  bool drains = false;
  if (!change.is_slow) {
    log_info(effects, "rank_no_longer_slow", "no longer slow: " + what);
  } else {
    job.hosts.note_slow(node.id.name, what);
    if (policy != StragglerPolicy::Report && acted_on_.insert(node.id.incarnation).second) {
      const bool may_act = !job.job_spec.has_fixed_ranks && can_continue(job, node);
      excludes = may_act && policy == StragglerPolicy::Exclude;
      drains = may_act && policy == StragglerPolicy::Drain;
      action = !may_act   ? "the job cannot continue without this node, so it stays"
               : excludes ? "its host is excluded"
                          : "its node is drained";
    }
    log_warning(effects, "slow_rank", "slow: " + what + (action.empty() ? "" : "; " + action));
  }
  if (node.facts.knows_slow_ranks) {
    send(node,
         control::SlowRank{job.round.number(), change.rank, change.is_slow, change.compute_us,
                           change.median_us, action},
         effects);
  }
  if (drains) {
    drained_.insert(node.id.incarnation);
    send(node, control::ShutdownRequest{true, "a rank here is slow (--stragglers=drain)", true},
         effects);
  }
  if (!excludes || !job.hosts.exclude_for(node.id.name, "slow: " + what)) return "";
  return "a rank on " + node.id.name + " is slow (--stragglers=exclude)";
}

}  // namespace cpprun
