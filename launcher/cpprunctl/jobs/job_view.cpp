#include "launcher/cpprunctl/jobs/job_view.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/json.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/shown_state.hpp"
#include "launcher/cpprunctl/jobs/finished_jobs.hpp"

namespace cpprun::ctl {
namespace {

using Json = nlohmann::ordered_json;

Result<Json> object_of(const std::string& body) {
  constexpr int kDepthMax = 32;
  Json json = parse_json<Json>(body, kDepthMax);
  if (json.is_object()) return json;
  return Error{ErrorKind::Protocol, "the coordinator sent no JSON object"};
}

const Json& at(const Json& json, const char* name) {
  static const Json kNone;
  const auto found = json.find(name);
  return found == json.end() ? kNone : *found;
}
std::string text(const Json& json, const char* name) {
  const Json& found = at(json, name);
  return found.is_string() ? found.get<std::string>() : "";
}
std::optional<int64_t> number(const Json& json, const char* name) {
  const Json& found = at(json, name);
  return found.is_number_integer() ? std::optional(found.get<int64_t>()) : std::nullopt;
}
int64_t whole(const Json& json, const char* name) { return number(json, name).value_or(0); }
Duration time_of(const Json& json, const char* name) {
  const Json& found = at(json, name);
  const double value = found.is_number() ? found.get<double>() : 0;
  return value > 0 && value < to_seconds(limits::kWireDurationMax) ? seconds(value) : Duration{};
}

// Calls use() with each object in the array of this name.
template <class Use>
void each_object(const Json& json, const char* name, Use use) {
  const Json& all = at(json, name);
  if (!all.is_array()) return;
  for (const Json& one : all) {
    if (one.is_object()) use(one);
  }
}

admin::WorkerView worker_of(const Json& json) {
  admin::WorkerView worker;
  worker.rank = whole(json, "rank");
  worker.local_rank = whole(json, "local_rank");
  worker.pid = whole(json, "pid");
  worker.memory_bytes = number(json, "memory_bytes");
  worker.stdout_file = text(json, "stdout");
  worker.stderr_file = text(json, "stderr");
  if (const auto step = number(json, "step")) {
    worker.progress =
        Heartbeat{*step, whole(json, "collectives"), static_cast<uint32_t>(whole(json, "phase")),
                  time_of(json, "heartbeat_age_s"), time_of(json, "step_s")};
  }
  return worker;
}

JobNode node_of(const Json& json) {
  return {text(json, "name"),      node_state_text(text(json, "state")), text(json, "address"),
          whole(json, "nproc"),    number(json, "group_rank"),           text(json, "node_check"),
          text(json, "link_check")};
}

JobHost host_of(const Json& json) {
  return {text(json, "host"),   whole(json, "failures"),      whole(json, "failed_starts"),
          whole(json, "hangs"), whole(json, "failed_checks"), whole(json, "losses"),
          whole(json, "slow"),  text(json, "excluded_by"),    text(json, "reason")};
}

std::optional<Goodput> goodput_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  Goodput goodput;
  for (size_t i = 0; i < kGoodputPhases; ++i) {
    goodput.spent[i] = time_of(at(json, "spent_s"), name_of(static_cast<GoodputPhase>(i)));
  }
  goodput.submissions = number(json, "submissions").value_or(1);
  return goodput;
}

JobStatus job_of(const Json& json) {
  JobStatus job;
  job.state = text(json, "state");
  if (job.state.empty()) job.state = name_of(shown_state_of_phase(text(json, "phase")));
  job.why_no_round = text(json, "why_no_round");
  job.round = whole(json, "round");
  job.min_nodes = whole(json, "min_nodes");
  job.max_nodes = whole(json, "max_nodes");
  job.restarts_used = whole(json, "restarts_used");
  job.max_restarts = whole(json, "max_restarts");
  job.hang_restarts_used = whole(json, "hang_restarts_used");
  job.max_hangs = whole(json, "max_hangs");
  job.node_losses_used = whole(json, "node_losses_used");
  job.max_node_losses = number(json, "max_node_losses");
  job.admin_restarts = whole(json, "admin_restarts");
  job.wanted_nodes = number(json, "wanted_nodes");
  if (const Json& snapshot = at(json, "snapshot"); snapshot.is_object()) {
    job.snapshot_step = number(snapshot, "step");
  }
  job.exclude_after = whole(json, "exclude_after");
  job.goodput = goodput_of(at(json, "goodput"));
  each_object(json, "hosts", [&](const Json& host) { job.hosts.push_back(host_of(host)); });
  each_object(json, "slow_ranks", [&](const Json& slow) {
    job.slow_ranks.push_back({whole(slow, "rank"), text(slow, "node"), whole(slow, "compute_us"),
                              whole(slow, "median_us")});
  });
  each_object(json, "nodes", [&](const Json& node) { job.nodes.push_back(node_of(node)); });
  const auto place = [](const JobNode& node) { return node.group_rank.value_or(INT64_MAX); };
  std::ranges::stable_sort(job.nodes, {}, place);
  return job;
}

std::string line_of(const Json& json) { return dump_json(json, 1) + "\n"; }

}  // namespace

Result<admin::NodeView> decode_node_view(const std::string& body) {
  Result<Json> json = object_of(body);
  if (!json) return json.error();
  admin::NodeView view;
  view.run_id = text(*json, "run_id");
  view.node = text(*json, "node");
  view.title = text(*json, "title");
  view.pid = whole(*json, "pid");
  view.state = text(*json, "state");
  view.coordinator = text(*json, "coordinator");
  view.is_host = at(*json, "is_host") == Json(true);
  view.round = whole(*json, "round");
  view.group_rank = whole(*json, "group_rank");
  view.group_size = whole(*json, "group_size");
  view.min_nodes = whole(*json, "min_nodes");
  view.world_size = whole(*json, "world_size");
  view.restarts_used = whole(*json, "restarts_used");
  view.max_restarts = whole(*json, "max_restarts");
  view.up = time_of(*json, "up_s");
  view.run_folder = text(*json, "run_folder");
  view.snapshot_step = number(*json, "snapshot_step");
  each_object(*json, "workers",
              [&](const Json& worker) { view.workers.push_back(worker_of(worker)); });
  return view;
}

Result<std::map<std::string, JobStatus>> decode_status(const std::string& body) {
  Result<Json> json = object_of(body);
  if (!json) return json.error();
  std::map<std::string, JobStatus> jobs;
  if (const Json& all = at(*json, "jobs"); all.is_object()) {
    for (const auto& [run_id, job] : all.items()) {
      if (job.is_object()) jobs[run_id] = job_of(job);
    }
  }
  return jobs;
}

std::vector<admin::WorkerStack> decode_stacks(const std::string& body) {
  std::vector<admin::WorkerStack> stacks;
  Result<Json> json = object_of(body);
  if (!json) return stacks;
  each_object(*json, "stacks", [&](const Json& one) {
    stacks.push_back({whole(one, "rank"), whole(one, "pid"), text(one, "text")});
  });
  return stacks;
}

std::string stacks_json(const std::vector<std::pair<std::string, admin::WorkerStack>>& stacks) {
  Json json{{"stacks", Json::array()}};
  for (const auto& [node, one] : stacks) {
    json["stacks"].push_back(
        {{"node", node}, {"rank", one.rank}, {"pid", one.pid}, {"text", one.text}});
  }
  return line_of(json);
}

namespace {

Json agents_json(const std::vector<std::string>& agents) {
  Json all = Json::array();
  for (const std::string& body : agents) {
    Result<Json> agent = object_of(body);
    if (!agent) continue;
    (*agent)["job_state"] = name_of(shown_state_of_agent(text(*agent, "state")));
    all.push_back(std::move(*agent));
  }
  return all;
}

}  // namespace

std::string all_jobs_json(const std::vector<std::string>& agents,
                          const std::vector<FinishedJob>& finished) {
  Json json{{"agents", agents_json(agents)}, {"finished", Json::array()}};
  for (const FinishedJob& job : finished) {
    const RunSummary& run = job.run;
    json["finished"].push_back({{"run_id", run.run_id},
                                {"job_state", job.state()},
                                {"outcome", run.outcome},
                                {"exit_code", run.exit_code},
                                {"begun_us", run.begun_us},
                                {"ended_us", run.ended_us},
                                {"world_size", run.workers},
                                {"script", run.script},
                                {"run_folder", job.folder}});
  }
  return line_of(json);
}

std::string joined_json(const std::vector<std::string>& agents, const std::string& status) {
  Json json{{"agents", agents_json(agents)}, {"status", nullptr}};
  if (Result<Json> whole = object_of(status); whole) json["status"] = std::move(*whole);
  return line_of(json);
}

std::string pid_json(int64_t pid, int64_t rank, const std::string& node) {
  return line_of({{"pid", pid}, {"rank", rank}, {"node", node}});
}

std::string done_text(const std::string& body) {
  Result<Json> json = object_of(body);
  return json ? text(*json, "done") : "";
}

}  // namespace cpprun::ctl
