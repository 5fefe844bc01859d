#include "rendezvous/core/feed.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/failure_class.hpp"
#include "common/limits/dashboard.hpp"
#include "rendezvous/core/status.hpp"
#include "rendezvous/protocol/stop_cause.hpp"

namespace cpprun {
namespace {

using nlohmann::json;

std::string line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json ms(Instant at) {
  return at.nanoseconds() / 1'000'000;
}
json ms(const std::optional<Instant>& at) {
  return at ? ms(*at) : json(nullptr);
}

json step_of(const std::optional<control::SnapshotName>& snapshot) {
  return snapshot ? json(snapshot->step) : json(nullptr);
}

// As an array, because there are many: name, state, workers, role, address, group rank, base rank.
json node_row(const Membership& job, const Node& node) {
  const auto world = job.worlds().find(node.id.incarnation);
  const bool is_member = world != job.worlds().end();
  return {node.id.name,
          name_of(node),
          node.facts.nproc,
          node.facts.role,
          node.session_facts.peer_address,
          is_member ? json(world->second.group_rank) : json(nullptr),
          is_member ? json(world->second.base_rank) : json(nullptr)};
}

// Members first, by rank: so the map stays as it is while others come and go.
json node_rows(const Membership& job) {
  std::vector<const Node*> nodes;
  for (const auto& [incarnation, node] : job.nodes()) nodes.push_back(&node);
  const auto place = [&job](const Node* node) {
    const auto world = job.worlds().find(node->id.incarnation);
    return world == job.worlds().end() ? INT64_MAX : world->second.group_rank;
  };
  std::ranges::stable_sort(nodes, {}, place);
  json rows = json::array();
  for (const Node* node : nodes) {
    if (rows.size() == limits::kNodesShown) break;
    rows.push_back(node_row(job, *node));
  }
  return rows;
}

json to_json(const RoundStory& story) {
  json object = {{"round", story.round.value},         {"nodes", story.nodes},
                 {"workers", story.workers},           {"formed_ms", ms(story.formed_at)},
                 {"started_ms", ms(story.started_at)}, {"stopped_ms", ms(story.stopped_at)},
                 {"over_ms", ms(story.over_at)}};
  if (story.stopped_at) {
    object["cause"] = control::name_of(story.cause);
    object["why"] = story.why;
  }
  if (story.failure) {
    object["class"] = name_of(*story.failure);
    object["culprit"] = story.culprit;
    object["last_lines"] = story.last_lines;
  }
  return object;
}

json to_json(const Membership& job, const JobStory* story) {
  json rounds = json::array();
  if (story != nullptr) {
    for (const RoundStory& each : story->rounds()) rounds.push_back(to_json(each));
  }
  const bool is_decided = job.is_decided();
  return {{"phase", name_of(job.phase())},
          {"outcome", is_decided ? json(outcome_of(job)) : json(nullptr)},
          {"verdict", is_decided ? job.decision().verdict.substr(0, limits::kWhyBytesTold) : ""},
          {"round", job.round().value},
          {"min_nodes", job.terms().min_nodes},
          {"max_nodes", job.terms().max_nodes},
          {"world_size", job.world_size()},
          {"restarts", {job.budget().used(), job.budget().max()}},
          {"hang_restarts", {job.hang_budget().used(), job.hang_budget().max()}},
          {"why_no_round", job.phase() == Membership::Phase::Running ? "" : job.why_no_round()},
          {"snapshot_step", step_of(job.newest_snapshot())},
          {"resumed_from", step_of(job.resume())},
          {"node_count", job.nodes().size()},
          {"nodes", node_rows(job)},
          {"rounds", rounds}};
}

// By global rank; -1: not known. Nothing while nobody has told anything.
json progress_of(const Membership& job) {
  if (job.worlds().empty()) return nullptr;
  const auto size = static_cast<size_t>(
      std::clamp<int64_t>(job.world_size(), 0, static_cast<int64_t>(limits::kRanksShown)));
  std::vector<int64_t> steps(size, -1);
  std::vector<int64_t> step_us(size, -1);
  bool is_any = false;
  for (const auto& [incarnation, world] : job.worlds()) {
    const auto it = job.nodes().find(incarnation);
    if (it == job.nodes().end() || !it->second.progress) continue;
    const control::Progress& told = *it->second.progress;
    if (told.round != job.round()) continue;
    const auto base = static_cast<size_t>(world.base_rank);
    const auto room = size - std::min(size, base);
    const auto workers = static_cast<size_t>(it->second.facts.nproc);
    for (size_t i = 0; i < std::min({room, told.steps.size(), workers}); ++i) {
      steps[base + i] = told.steps[i];
      if (i < told.step_us.size()) step_us[base + i] = told.step_us[i];
      is_any = true;
    }
  }
  if (!is_any) return nullptr;
  return {{"round", job.round().value}, {"steps", steps}, {"step_us", step_us}};
}

}  // namespace

std::string dashboard_state(const Coordinator& coordinator, const Chronicle& chronicle) {
  json jobs = json::object();
  for (const auto& [run_id, job] : coordinator.jobs()) {
    jobs[run_id] = to_json(*job, chronicle.of(run_id));
  }
  return line({{"version", CPPRUN_VERSION}, {"host", coordinator.host()}, {"jobs", jobs}});
}

std::string dashboard_progress(const Coordinator& coordinator) {
  json jobs = json::object();
  for (const auto& [run_id, job] : coordinator.jobs()) {
    json progress = progress_of(*job);
    if (!progress.is_null()) jobs[run_id] = std::move(progress);
  }
  return line({{"jobs", jobs}});
}

}  // namespace cpprun
