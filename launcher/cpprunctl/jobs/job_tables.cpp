#include "launcher/cpprunctl/jobs/job_tables.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "common/shown_state.hpp"
#include "common/text.hpp"
#include "launcher/report/text_table.hpp"

namespace cpprun::ctl {
namespace {

using admin::NodeView;
using admin::WorkerView;

// A job as its agents on this machine see it.
struct JobRow {
  std::string run_id;
  ShownState state = ShownState::Waiting;
  int64_t nodes = 0, workers = 0;  // of the round; 0 before the first one
  int64_t restarts_used = 0, max_restarts = 0;
  Duration up{};
  std::string script;
};

// In the order of the first agent of each job.
std::vector<JobRow> rows_of(const std::vector<LocalJob>& agents) {
  std::vector<JobRow> rows;
  for (const LocalJob& agent : agents) {
    const NodeView& view = agent.view;
    const ShownState state = shown_state_of_agent(view.state);
    auto row = std::ranges::find(rows, view.run_id, &JobRow::run_id);
    if (row == rows.end()) {
      rows.push_back({view.run_id, state, 0, 0, 0, 0, {}, view.title});
      row = std::prev(rows.end());
    }
    row->state = joined(row->state, state);
    row->nodes = std::max(row->nodes, view.group_size);
    row->workers = std::max(row->workers, view.world_size);
    row->restarts_used = std::max(row->restarts_used, view.restarts_used);
    row->max_restarts = std::max(row->max_restarts, view.max_restarts);
    row->up = std::max(row->up, view.up);
  }
  return rows;
}

std::string count_text(int64_t count) { return count > 0 ? std::to_string(count) : "-"; }

std::string of(int64_t part, int64_t whole) {
  return std::to_string(part) + "/" + std::to_string(whole);
}

std::string range_of(int64_t first, int64_t count) {
  if (count <= 0) return "-";
  return count == 1 ? std::to_string(first)
                    : std::to_string(first) + "-" + std::to_string(first + count - 1);
}

std::string snapshot_of(const std::optional<int64_t>& step) {
  return step ? "step " + std::to_string(*step) : "none";
}

// The worker that is furthest, took longest or has most memory comes first.
bool is_before(WorkerOrder order, const WorkerView& one, const WorkerView& other) {
  const auto key = [order](const WorkerView& worker) -> int64_t {
    if (order == WorkerOrder::Memory) return worker.memory_bytes.value_or(-1);
    if (!worker.progress) return -1;
    return order == WorkerOrder::Step ? worker.progress->step : worker.progress->step_takes.count();
  };
  return order == WorkerOrder::Rank ? one.rank < other.rank : key(one) > key(other);
}

std::vector<std::string> row_of(const WorkerView& worker, const std::string& node) {
  std::string step = "-";
  std::string takes = "-";
  std::string age = "-";
  if (const auto& progress = worker.progress) {
    step = std::to_string(progress->step);
    age = duration_text(to_seconds(progress->age));
    if (progress->step_takes > Duration{}) takes = duration_text(to_seconds(progress->step_takes));
  }
  const std::string memory = worker.memory_bytes ? memory_text(*worker.memory_bytes) : "-";
  return {std::to_string(worker.rank), node, std::to_string(worker.pid), step, takes, age, memory};
}

std::string slow_ranks_text(const JobStatus& job) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, job.slow_ranks.size()); ++i) {
    const JobSlowRank& slow = job.slow_ranks[i];
    text += "slow: rank " + std::to_string(slow.rank) + " on " + clean(slow.node) + " computes " +
            duration_text_us(slow.compute_us) + " a step, the median rank " +
            duration_text_us(slow.median_us) + "\n";
  }
  if (job.slow_ranks.size() <= kShown) return text;
  return text + "slow: " + std::to_string(job.slow_ranks.size() - kShown) + " further ranks\n";
}

std::string head_of(const JobStatus& job, bool has_color) {
  std::string nodes = std::to_string(job.min_nodes);
  if (job.max_nodes != job.min_nodes) nodes += ":" + std::to_string(job.max_nodes);
  std::string text =
      styled(style_of(job.state), clean(job.state), has_color) + ", round " +
      std::to_string(job.round) + ", --nnodes " + nodes +
      (job.wanted_nodes ? " (wanted: " + std::to_string(*job.wanted_nodes) + ")" : "") +
      ", restarts " + of(job.restarts_used, job.max_restarts) +
      (job.hang_restarts_used > 0 ? ", after hangs " + of(job.hang_restarts_used, job.max_hangs)
                                  : "") +
      (job.max_node_losses ? ", node losses " + of(job.node_losses_used, *job.max_node_losses)
                           : "") +
      (job.admin_restarts > 0 ? " and " + std::to_string(job.admin_restarts) + " by operators"
                              : "") +
      ", newest snapshot: " + snapshot_of(job.snapshot_step) + "\n";
  if (!job.why_no_round.empty()) text += clean(job.why_no_round) + "\n";
  text += slow_ranks_text(job);
  if (job.goodput && job.goodput->share()) text += goodput_line(*job.goodput) + "\n";
  return text;
}

// What only an agent on this machine knows.
std::string whereabouts_of(const NodeView& view) {
  std::string text = clean(view.title) + ", up " + duration_text(to_seconds(view.up));
  if (!view.coordinator.empty()) text += ", coordinator " + clean(view.coordinator);
  if (!view.run_folder.empty()) text += ", logs " + clean(view.run_folder);
  return text + "\n";
}

// Adjacent nodes in the same state, shown as one row: from index `first` to `last`.
struct Neighbours {
  size_t first = 0, last = 0;
  int64_t workers = 0;
};

std::vector<Neighbours> neighbours_of(const std::vector<JobNode>& nodes, bool are_folded) {
  std::vector<Neighbours> all;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool is_like_last =
        are_folded && i > 0 && nodes[i].state == nodes[i - 1].state &&
        nodes[i].group_rank.has_value() == nodes[i - 1].group_rank.has_value();
    if (!is_like_last) all.push_back({i, i, 0});
    all.back().last = i;
    all.back().workers += nodes[i].nproc;
  }
  return all;
}

// With many nodes, adjacent nodes in the same state share a row, so that the table fits one screen
// and deviating nodes stand out.
std::string nodes_text(const JobStatus& job, bool has_color) {
  constexpr size_t kRows = 32;
  TextTable table({"NODE", "STATE", "RANKS", "ADDRESS"});
  int64_t rank = 0;
  for (const Neighbours& row : neighbours_of(job.nodes, job.nodes.size() > kRows)) {
    const JobNode& first = job.nodes[row.first];
    const size_t count = row.last - row.first + 1;
    const bool is_member = first.group_rank.has_value();
    table.add({count == 1 ? first.name : first.name + " to " + job.nodes[row.last].name,
               first.state, is_member ? range_of(rank, row.workers) : "-",
               count == 1 ? first.address : std::to_string(count) + " nodes"});
    table.paint(1, style_of(first.state));
    if (is_member) rank += row.workers;
  }
  return table.is_empty() ? "" : "\n" + table.text(has_color);
}

// From JOB to UP.
std::vector<std::string> cells_of(const JobRow& job) {
  return {job.run_id,
          name_of(job.state),
          count_text(job.nodes),
          count_text(job.workers),
          of(job.restarts_used, job.max_restarts),
          duration_text(to_seconds(job.up))};
}

std::string state_text(const JobNode& node) {
  if (node.node_check == "failed") return "check failed";
  return node.link_check == "failed" ? "link failed" : node.state;
}

}  // namespace

std::string ps_text(const std::vector<LocalJob>& jobs, bool has_color) {
  TextTable table({"JOB", "STATE", "NODES", "WORKERS", "RESTARTS", "UP", "SCRIPT"});
  for (const JobRow& job : rows_of(jobs)) {
    std::vector<std::string> cells = cells_of(job);
    cells.push_back(job.script);
    table.add(std::move(cells));
    table.paint(1, style_of(name_of(job.state)));
  }
  return table.is_empty() ? "no job of yours runs on this machine\n" : table.text(has_color);
}

std::string ps_all_text(const std::vector<LocalJob>& running,
                        const std::vector<FinishedJob>& finished, int64_t now_us, bool has_color) {
  TextTable table({"JOB", "STATE", "NODES", "WORKERS", "RESTARTS", "UP", "ENDED", "SCRIPT"});
  for (const JobRow& job : rows_of(running)) {
    std::vector<std::string> cells = cells_of(job);
    cells.insert(cells.end(), {"-", job.script});
    table.add(std::move(cells));
    table.paint(1, style_of(name_of(job.state)));
  }
  for (const FinishedJob& job : finished) {
    const RunSummary& run = job.run;
    table.add({run.run_id, job.state(), count_text(run.nodes), count_text(run.workers),
               of(run.restarts_used, run.max_restarts),
               duration_text_us(run.ended_us - run.begun_us),
               duration_text_us(now_us - run.ended_us) + " ago", run.script});
    table.paint(1, style_of(job.state()));
  }
  return table.is_empty() ? "no job of yours runs on this machine or has a run folder here\n"
                          : table.text(has_color);
}

WorkerOrder worker_order(std::string_view word) {
  for (const WorkerOrder order : {WorkerOrder::Step, WorkerOrder::StepTime, WorkerOrder::Memory}) {
    if (word == name_of(order)) return order;
  }
  return WorkerOrder::Rank;
}

const char* name_of(WorkerOrder order) {
  switch (order) {
    case WorkerOrder::Rank: return "rank";
    case WorkerOrder::Step: return "step";
    case WorkerOrder::StepTime: return "time";
    case WorkerOrder::Memory: return "memory";
  }
  return "";
}

WorkerOrder next(WorkerOrder order) {
  return order == WorkerOrder::Memory ? WorkerOrder::Rank
                                      : static_cast<WorkerOrder>(static_cast<int>(order) + 1);
}

std::string status_text(const std::string& run_id, const JobStatus* job,
                        const std::vector<LocalJob>& agents, WorkerOrder order, bool has_color) {
  std::string text = styled(TextStyle::Strong, "job " + clean(run_id), has_color) + "\n";
  if (job != nullptr) text += head_of(*job, has_color);
  if (!agents.empty()) text += whereabouts_of(agents.front().view);
  if (job != nullptr) text += nodes_text(*job, has_color);
  std::vector<std::pair<const WorkerView*, std::string>> rows;
  for (const LocalJob& agent : agents) {
    for (const WorkerView& worker : agent.view.workers) rows.emplace_back(&worker, agent.view.node);
  }
  if (order != WorkerOrder::Rank) {
    std::ranges::stable_sort(rows, [order](const auto& one, const auto& other) {
      return is_before(order, *one.first, *other.first);
    });
  }
  TextTable workers({"RANK", "NODE", "PID", "STEP", "STEP TIME", "HEARTBEAT", "MEMORY"});
  for (const auto& [worker, node] : rows) workers.add(row_of(*worker, node));
  if (!workers.is_empty()) text += "\nworkers here:\n" + workers.text(has_color);
  return text;
}

std::string hosts_text(const std::string& run_id, const JobStatus& job) {
  std::map<std::string, JobHost> records;
  for (const JobHost& host : job.hosts) records[host.host] = host;
  std::vector<std::pair<std::string, std::string>> rows;  // host, state
  std::set<std::string> shown;
  for (const JobNode& node : job.nodes) {
    if (!shown.insert(node.name).second) continue;
    rows.emplace_back(node.name, state_text(node));
  }
  for (const JobHost& host : job.hosts) {
    if (!shown.insert(host.host).second) continue;
    rows.emplace_back(host.host, host.excluded_by.empty() ? "gone" : "excluded, gone");
  }
  TextTable table(
      {"HOST", "STATE", "FAILURES", "STARTS", "HANGS", "CHECKS", "LOSSES", "SLOW", "REASON"});
  for (const auto& [name, state] : rows) {
    const JobHost& host = records[name];
    table.add({name, state, std::to_string(host.failures), std::to_string(host.failed_starts),
               std::to_string(host.hangs), std::to_string(host.failed_checks),
               std::to_string(host.losses), std::to_string(host.slow),
               host.reason.empty() ? "-" : host.reason});
  }
  const std::string policy = job.exclude_after > 0
                                 ? "excludes a host after " + std::to_string(job.exclude_after) +
                                       " faults (--exclude-after)"
                                 : "excludes no host by itself (--exclude-after is not given)";
  return "job " + clean(run_id) + " " + policy + "\n" + table.text();
}

// In synchronous training all ranks are within one step, and the slowest one delays the others.
std::string slowest_text(const std::vector<LocalJob>& agents) {
  const admin::WorkerView* slowest = nullptr;
  int64_t first = 0;
  const auto key = [](const admin::WorkerView& worker) {
    return std::pair(-worker.progress->step, worker.progress->step_takes);
  };
  for (const LocalJob& job : agents) {
    for (const admin::WorkerView& worker : job.view.workers) {
      if (!worker.progress) continue;
      first = std::max(first, worker.progress->step);
      if (slowest == nullptr || key(*slowest) < key(worker)) slowest = &worker;
    }
  }
  if (slowest == nullptr) return "";
  const Heartbeat& progress = *slowest->progress;
  std::string text = "slowest: rank " + std::to_string(slowest->rank);
  if (progress.step_takes > Duration{}) {
    text += ", " + duration_text(to_seconds(progress.step_takes)) + " a step";
  }
  text += ", at step " + std::to_string(progress.step);
  if (first > progress.step) text += ", " + std::to_string(first - progress.step) + " behind";
  return text + "\n";
}

namespace {

// At most so many characters of the line; colours take no room.
std::string cut(const std::string& line, size_t columns) {
  std::string out;
  size_t shown = 0;
  bool has_escape = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      const size_t end = std::min(line.find('m', i), line.size() - 1);
      out += line.substr(i, end - i + 1);
      has_escape = true;
      i = end;
      continue;
    }
    const bool is_begin = (static_cast<unsigned char>(line[i]) & 0xc0) != 0x80;  // of a character
    if (is_begin && ++shown > columns) return has_escape ? out + "\x1b[0m" : out;
    out += line[i];
  }
  return out;
}

}  // namespace

std::string frame(const std::string& text, size_t rows, size_t columns, const std::string& foot) {
  std::vector<std::string> lines = text::split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  const size_t shown = std::min(lines.size(), std::max<size_t>(rows, 3) - (foot.empty() ? 1 : 2));
  std::string out = "\x1b[H";
  for (size_t i = 0; i < shown; ++i) {
    const bool is_cut = i + 1 == shown && shown < lines.size();
    const std::string line =
        is_cut ? "... and " + std::to_string(lines.size() - shown + 1) + " lines more" : lines[i];
    out += cut(line, columns) + "\x1b[K\r\n";
  }
  if (!foot.empty()) out += cut(foot, columns) + "\x1b[K\r\n";
  return out + "\x1b[J";
}

}  // namespace cpprun::ctl
