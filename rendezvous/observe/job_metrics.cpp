#include "rendezvous/observe/job_metrics.hpp"

#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>

#include "rendezvous/observe/prometheus.hpp"
#include "rendezvous/observe/status.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/control/control_fields.hpp"

namespace cpprun {
namespace {

using control::StopCause;
using Phase = Job::Phase;

constexpr const char* kNodeStates[] = {"idle",     "starting", "running", "stopped", "done",
                                       "draining", "excluded", "silent",  "dead"};

// Writes families, with a series for each job.
class JobPage {
 public:
  JobPage(const Coordinator& coordinator, const HistoryRecorder& job_history,
          prometheus::Format format)
      : coordinator_(coordinator), job_history_(job_history), text_(format) {}

  void state();
  void restarts();
  void history();
  void recoveries();
  void worker_starts();
  void goodput();
  std::string take() { return text_.take(); }

 private:
  void each(const std::function<void(std::string_view, const Job&)>& write) {
    for (const auto& [run_id, job] : coordinator_.jobs()) write(run_id, *job);
  }
  void each_history(const std::function<void(std::string_view, const JobHistory&)>& write) {
    for (const auto& [run_id, job] : coordinator_.jobs()) {
      if (const JobHistory* record = job_history_.of(run_id)) write(run_id, *record);
    }
  }
  // One number per job.
  void number(const char* kind, const char* name, const char* help,
              const std::function<int64_t(const Job&)>& value) {
    text_.family(name, kind, help);
    each([&](std::string_view id, const Job& job) { text_.series({{"run_id", id}}, value(job)); });
  }
  void gauge(const char* name, const char* help, const std::function<int64_t(const Job&)>& value) {
    number("gauge", name, help, value);
  }
  // A counter per job and value of an enum, from 0 to `last`; the label is the value's name.
  template <class Enum>
  void counts(const char* name, const char* help, std::string_view label, Enum last,
              const std::map<Enum, int64_t>& (JobHistory::*counts_of)() const) {
    text_.family(name, "counter", help);
    each_history([&](std::string_view id, const JobHistory& record) {
      const std::map<Enum, int64_t>& all = (record.*counts_of)();
      for (int i = 0; i <= static_cast<int>(last); ++i) {
        const auto found = all.find(static_cast<Enum>(i));
        text_.series({{"run_id", id}, {label, name_of(static_cast<Enum>(i))}},
                     found == all.end() ? 0 : found->second);
      }
    });
  }
  void nodes();

  const Coordinator& coordinator_;
  const HistoryRecorder& job_history_;
  prometheus::Text text_;
};

void JobPage::state() {
  text_.family("cpprun_job_phase", "gauge",
               "1 for the phase that the job is in, 0 for the others.");
  each([&](std::string_view id, const Job& job) {
    for (int i = 0; i <= static_cast<int>(Phase::Ended); ++i) {
      const auto phase = static_cast<Phase>(i);
      text_.series({{"run_id", id}, {"phase", name_of(phase)}}, job.phase() == phase);
    }
  });
  text_.family("cpprun_job_outcome", "gauge",
               "1 for the outcome of a job that is decided; a job that is not has no series.");
  each([&](std::string_view id, const Job& job) {
    const char* outcome = outcome_of(job);
    if (outcome != nullptr) text_.series({{"run_id", id}, {"outcome", outcome}}, 1);
  });
  gauge("cpprun_job_round", "Number of the newest round.",
        [](const Job& job) { return job.round().value; });
  nodes();
  gauge("cpprun_job_world_size", "Workers of the newest round.",
        [](const Job& job) { return job.world_size(); });
  gauge("cpprun_job_slow_ranks", "Ranks that compute more slowly than the others, as far as known.",
        [](const Job& job) { return static_cast<int64_t>(job.slow_ranks().size()); });
  text_.family("cpprun_job_snapshot_step", "gauge",
               "Optimizer steps in the newest complete snapshot; no series while there is none.");
  each([&](std::string_view id, const Job& job) {
    if (auto newest = job.newest_snapshot()) text_.series({{"run_id", id}}, newest->step);
  });
}

void JobPage::nodes() {
  text_.family("cpprun_job_nodes", "gauge", "Nodes that the coordinator knows, by state.");
  each([&](std::string_view id, const Job& job) {
    std::map<std::string_view, int64_t> counts;
    for (const auto& [incarnation, node] : job.nodes()) ++counts[name_of(node)];
    for (const char* state : kNodeStates) {
      text_.series({{"run_id", id}, {"state", state}}, counts[state]);
    }
  });
  gauge("cpprun_job_nodes_min", "Nodes without which no round begins (--nnodes MIN).",
        [](const Job& job) { return job.job_spec().min_nodes; });
  gauge("cpprun_job_nodes_max", "Nodes that a round has at most (--nnodes MAX).",
        [](const Job& job) { return job.job_spec().max_nodes; });
}

void JobPage::restarts() {
  const auto all = [this](const std::function<int64_t(const RestartBudget&)>& value) {
    each([&](std::string_view id, const Job& job) {
      text_.series({{"run_id", id}, {"after", "failure"}}, value(job.budget()));
      text_.series({{"run_id", id}, {"after", "hang"}}, value(job.hang_restart_budget()));
      const RestartBudget* losses = job.node_loss_budget();
      if (losses) text_.series({{"run_id", id}, {"after", "node_loss"}}, value(*losses));
    });
  };
  text_.family("cpprun_job_restarts_total", "counter",
               "Restarts charged to a budget, after failures, after hangs and, with "
               "--max-node-losses, after losses of nodes.");
  all([](const RestartBudget& budget) { return budget.used(); });
  text_.family("cpprun_job_restarts_left", "gauge", "Restarts that the job may still use.");
  all([](const RestartBudget& budget) { return budget.max() - budget.used(); });
  text_.family("cpprun_job_restart_delay_seconds", "gauge",
               "Delay of the next round after the last one (--restart-backoff); 0: there is none.");
  each([&](std::string_view id, const Job& job) {
    text_.part("", {{"run_id", id}}, to_seconds(job.restart_delay()));
  });
  number("counter", "cpprun_job_admin_restarts_total",
         "Restarts that operators asked for; they cost nothing of the budget.",
         [](const Job& job) { return job.admin_restarts(); });
}

void JobPage::history() {
  text_.family("cpprun_job_rounds_total", "counter",
               "Rounds that this coordinator has formed or taken over.");
  each_history([&](std::string_view id, const JobHistory& record) {
    text_.series({{"run_id", id}}, record.rounds_formed());
  });
  counts("cpprun_job_stops_total", "Rounds that were stopped, by cause.", "cause",
         StopCause(control::last_value(StopCause())), &JobHistory::stops);
  counts("cpprun_job_failures_total",
         "Rounds that ended by a failure or a lost node, by the class of the first failure.",
         "class", FailureClass::Hang, &JobHistory::failures);
}

void JobPage::recoveries() {
  text_.family("cpprun_job_recovery_seconds", "histogram",
               "From the stop of a round until all workers of a later one run.");
  each_history([&](std::string_view id, const JobHistory& record) {
    const Recoveries& all = record.recoveries();
    int64_t so_far = 0;
    for (size_t i = 0; i < all.counts.size(); ++i) {
      so_far += all.counts[i];
      const bool is_last = i == Recoveries::kBounds.size();
      const std::string bound = is_last ? "+Inf" : text_.bound(Recoveries::kBounds[i]);
      text_.part("_bucket", {{"run_id", id}, {"le", bound}}, static_cast<double>(so_far));
    }
    text_.part("_sum", {{"run_id", id}}, all.sum_s);
    text_.part("_count", {{"run_id", id}}, static_cast<double>(all.count()));
  });
}

void JobPage::worker_starts() {
  text_.family("cpprun_job_preload_nodes", "gauge",
               "Nodes by the state of their preload process when their newest round started; off: "
               "without --preload.");
  each([&](std::string_view id, const Job& job) {
    std::map<PreloadState, int64_t> counts;
    for (const auto& [incarnation, node] : job.nodes()) ++counts[node.starts.preload];
    for (size_t i = 0; i < kPreloadStates; ++i) {
      const auto state = static_cast<PreloadState>(i);
      text_.series({{"run_id", id}, {"state", name_of(state)}}, counts[state]);
    }
  });
  number("counter", "cpprun_job_workers_forked_total",
         "Workers that agents forked from a preload process.",
         [](const Job& job) { return job.start_totals().forked(); });
  text_.family("cpprun_job_workers_spawned_total", "counter",
               "Workers that agents spawned, by the reason why they did not fork them.");
  each([&](std::string_view id, const Job& job) {
    for (size_t i = 0; i < kSpawnReasons; ++i) {
      const auto reason = static_cast<SpawnReason>(i);
      text_.series({{"run_id", id}, {"reason", name_of(reason)}},
                   job.start_totals().spawned(reason));
    }
  });
  text_.family("cpprun_job_imports_saved_seconds_total", "counter",
               "Import time that forked workers did not spend: the preload process's, for each.");
  each([&](std::string_view id, const Job& job) {
    constexpr double kPerSecond = 1000;
    text_.part("", {{"run_id", id}},
               static_cast<double>(job.start_totals().saved_ms()) / kPerSecond);
  });
}

// As the node of group rank 0 sees it.
void JobPage::goodput() {
  text_.family("cpprun_job_time_seconds_total", "counter",
               "How the job has used its time, by phase, as its first node sees it; no series "
               "before the first report.");
  each([&](std::string_view id, const Job& job) {
    const std::optional<Goodput> goodput = goodput_of(job);
    if (!goodput) return;
    for (size_t i = 0; i < kGoodputPhases; ++i) {
      const char* phase = name_of(static_cast<GoodputPhase>(i));
      text_.part("", {{"run_id", id}, {"phase", phase}}, to_seconds(goodput->spent[i]));
    }
  });
  gauge("cpprun_job_submissions",
        "How often the job was submitted, as far as --state-dir records it. Its times are those of "
        "all.",
        [](const Job& job) {
          const std::optional<Goodput> goodput = goodput_of(job);
          return goodput ? goodput->submissions : 1;
        });
}

}  // namespace

std::string job_metrics(const Coordinator& coordinator, const HistoryRecorder& job_history,
                        prometheus::Format format) {
  JobPage page(coordinator, job_history, format);
  page.state();
  page.restarts();
  page.history();
  page.recoveries();
  page.worker_starts();
  page.goodput();
  return page.take();
}

}  // namespace cpprun
