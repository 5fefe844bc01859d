#include "tests/support/sim/large_job.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/goodput/goodput_account.hpp"
#include "common/goodput/save_interval.hpp"
#include "common/limits/regroup.hpp"
#include "rendezvous/coordinator/hosts/host_ledger.hpp"
#include "rendezvous/coordinator/restart_budgets.hpp"
#include "tests/support/sim/prng.hpp"

namespace cpprun::sim {
namespace {

constexpr int64_t kWorkersOfLargeNode = 8;
constexpr int64_t kRanksOfSmallGroup = 1024;
constexpr int64_t kManyRestarts = 1'000'000;
constexpr int64_t kFaultsToExclude = 2;
// Of the faults of a device. With this share a third of all incidents (32.5 %) ends with another
// machine, as ByteRobust reports.
constexpr double kRecurringShare = 0.42;

enum class Incident { Device, Software, NodeSilent, NodeGone, Hang };

// Incidents of 54 days on 16,384 GPUs (The Llama 3 Herd of Models, table 5).
struct IncidentShare {
  Incident cause;
  double count;
};
constexpr std::array<IncidentShare, 5> kIncidents{{
    {Incident::Device, 148 + 72 + 19 + 17 + 6 + 6},  // see docs/goodput.md
    {Incident::Software, 54 + 2},                    // bug, dependency
    {Incident::NodeSilent, 35 + 7 + 14},             // switch and cable, NIC, parts of the host
    {Incident::NodeGone, 32},                        // maintenance of the host
    {Incident::Hang, 7},                             // NCCL watchdog
}};

class LargeJobRun {
 public:
  explicit LargeJobRun(const LargeJobOptions& options)
      : options_(options),
        times_(options.times),
        prng_(options.seed),
        nodes_(options.workers / kWorkersOfLargeNode),
        hosts_(options.means.spares ? kFaultsToExclude : 0),
        budgets_(kManyRestarts) {
    for (int64_t i = 0; i < nodes_; ++i) names_.push_back(i);
    next_name_ = nodes_;
    spares_ = options.means.spares ? std::max<int64_t>(2, nodes_ / 100) : 0;
  }

  LargeJobResult run() {
    account_.begin(now_);
    draw_failure();
    const Instant end = now_ + options_.lasts;
    Duration recovery = start_time(false, true);
    while (now_ < end) {
      recovery = run_round(recovery, end);
    }
    LargeJobResult result;
    result.accounted = account_.at(now_);
    result.useful = best_step_ * times_.step;
    result.total = now_ - Instant();
    result.failures = failures_;
    result.excluded = excluded_;
    result.charged = budgets_.failures().used() + budgets_.hangs().used();
    result.rounds = rounds_;
    return result;
  }

 private:
  struct Trouble {
    Instant at = Instant::never();
    Incident cause = Incident::Software;
    size_t node = 0;
  };

  Duration save_time() const {
    return options_.means.memory ? times_.memory_save : times_.disk_save;
  }

  // As maybe_save(step, 'auto') decides.
  int64_t steps_per_save(Instant at) const {
    const double between = time_between_rollbacks(to_seconds(at - Instant()), rollbacks_);
    const double interval = best_save_interval(to_seconds(save_time()), between);
    return std::max<int64_t>(1, std::llround(interval / to_seconds(times_.step)));
  }

  // At most one failure is left of those that fall into a recovery: it begins the recovery anew.
  void draw_failure() {
    double total = 0;
    for (const IncidentShare& share : kIncidents) total += share.count;
    double drawn = prng_.share() * total;
    next_.at =
        std::max(now_, next_.at.is_never() ? now_ : next_.at) + prng_.until_event(options_.mttf);
    next_.node = static_cast<size_t>(prng_.below(nodes_));
    next_.cause = kIncidents.back().cause;
    for (const IncidentShare& share : kIncidents) {
      if (drawn < share.count) {
        next_.cause = share.cause;
        break;
      }
      drawn -= share.count;
    }
  }

  // The failure that comes first: one that was drawn, or one of a faulty host that trains again.
  Trouble first_trouble(Instant training_since) const {
    Trouble first = next_;
    for (const auto& [name, node] : faulty_) {
      const Instant again = training_since + recurs_in_.at(name);
      if (again < first.at) first = Trouble{again, Incident::Device, node};
    }
    return first;
  }

  // Communicators, imports and setup of a new round, from its rank assignment to its first step.
  Duration start_time(bool has_survivors, bool is_replaced) const {
    const LargeJobMeans& means = options_.means;
    const bool is_small = has_survivors && means.small_groups;
    const int64_t ranks =
        is_small ? std::min(kRanksOfSmallGroup, options_.workers) : options_.workers;
    const Duration communicators =
        seconds(to_seconds(times_.communicators_of_98304) * static_cast<double>(ranks) / 98304);
    const Duration load = load_time(has_survivors, is_replaced);
    return import_time() + (has_survivors ? times_.setup_beside_survivors : times_.setup) +
           communicators + load;
  }
  Duration load_time(bool has_survivors, bool is_replaced) const {
    if (!options_.means.memory && !has_survivors) return times_.disk_load;
    if (is_replaced) return times_.memory_fetch;
    return has_survivors ? times_.shared_state : times_.memory_load;
  }
  Duration import_time() const { return options_.means.preload ? times_.fork : times_.imports; }

  // One round from its rank assignment to the next one. Returns how long the next one starts.
  Duration run_round(Duration start, Instant end) {
    ++rounds_;
    ++rounds_without_step_;
    const Instant formed = now_;
    account_.form(formed, best_step_);
    account_.run(formed + times_.restart + times_.restart_per_node * nodes_);
    now_ = formed + times_.restart + times_.restart_per_node * nodes_;
    account_.expect_steps();
    account_.connect(now_ + import_time());
    const Instant trains = now_ + start;
    const Trouble trouble = first_trouble(trains);
    const Instant stops = std::min(trouble.at, end);
    if (stops > trains) train(trains, stops);
    now_ = std::max(now_, stops);
    if (now_ >= end) return {};
    return recover(trouble);
  }

  // Steps from the state on, with a save when steps_per_save() have been made since the last one.
  void train(Instant since, Instant until) {
    Instant at = since;
    Duration saved{};
    int64_t step = resume_step_, between_saves = steps_per_save(since);
    while (at + times_.step <= until) {
      at = at + times_.step;
      ++step;
      if (step - last_save_ < between_saves) continue;
      const Instant done = at + save_time();
      saved = saved + (std::min(done, until) - at);
      if (done > until) break;
      before_last_save_ = std::exchange(last_save_, step);
      at = done;
      between_saves = steps_per_save(at);
    }
    if (step == resume_step_) return;
    account_.step(since + times_.step, resume_step_ + 1);
    rounds_without_step_ = 0;
    has_state_ = true;
    reached_step_ = step;
    account_.beat(at, reached_step_, saved);
    best_step_ = std::max(best_step_, reached_step_);
  }

  Duration recover(const Trouble& trouble) {
    const LargeJobMeans& means = options_.means;
    const bool is_drawn = trouble.at == next_.at;
    if (is_drawn) {
      ++failures_;
      draw_failure();
    }
    const bool is_lost =
        trouble.cause == Incident::NodeSilent || trouble.cause == Incident::NodeGone;
    const int64_t name = names_[trouble.node];
    if (is_drawn && trouble.cause == Incident::Device && prng_.chance(kRecurringShare)) {
      faulty_.emplace(name, trouble.node);
    }
    if (faulty_.contains(name)) recurs_in_[name] = prng_.until_event(times_.recurs);
    notice(trouble);
    bool is_replaced = is_lost;
    if (is_lost) hosts_.note_loss(host(name), "it went silent");
    if (!is_lost) budgets_.charge(RoundNumber(rounds_), trouble.cause == Incident::Hang);
    if (is_excluded_now(trouble, is_lost)) {
      budgets_.refund(RoundNumber(rounds_));
      is_replaced = true;
    } else if (!is_drawn && (!hosts_.is_on() || hosts_.find(host(name)) == nullptr)) {
      is_replaced = true;  // no policy, or its records are full: somebody removes the host
      now_ = now_ + times_.operator_acts;
    }
    const bool survive = do_workers_stay(trouble, is_lost);
    now_ = now_ + (survive ? times_.regroup : times_.stop);
    account_.leave(now_);
    if (is_replaced) replace(trouble.node);
    if (survive) {
      resume_step_ = reached_step_;
    } else {
      resume_step_ = means.memory && is_lost ? std::min(before_last_save_, last_save_) : last_save_;
      before_last_save_ = last_save_ = reached_step_ = resume_step_;
      has_state_ = false;
      ++rollbacks_;
    }
    return start_time(survive, is_replaced);
  }

  // As the product decides (agent/core/survivors.hpp). Without hang detection NCCL's watchdog ends
  // all workers.
  bool do_workers_stay(const Trouble& trouble, bool is_lost) const {
    const LargeJobMeans& means = options_.means;
    if (!means.in_process || !has_state_) return false;
    if (trouble.cause == Incident::Hang && !means.spares) return false;
    return means.always_stay || is_lost || rounds_without_step_ <= limits::kRoundsWithoutStepMost;
  }

  // Until the launcher knows.
  void notice(const Trouble& trouble) {
    if (trouble.cause == Incident::Hang) {
      account_.hang(now_);
      now_ = now_ + (options_.means.spares ? times_.hang_noticed : times_.watchdog);
    }
    if (trouble.cause == Incident::NodeSilent) now_ = now_ + times_.loss_noticed;
    account_.fail();
    account_.stop(now_);
  }

  // By the product's rule.
  bool is_excluded_now(const Trouble& trouble, bool is_lost) {
    RootCause cause{host(names_[trouble.node]), {}};
    cause.end.exit_code = trouble.cause == Incident::Hang ? 0 : 1;
    cause.end.ended_at = cause.end.started_at + std::chrono::hours(1);  // no failed start
    if (trouble.cause == Incident::Hang) cause.end.hang = "no heartbeat";
    const auto result = hosts_.end_round(is_lost ? nullptr : &cause, static_cast<size_t>(nodes_));
    for (const std::string& excluded : result.excluded) {
      ++excluded_;
      readmissions_.emplace(now_ + times_.cleared, excluded);
    }
    while (!readmissions_.empty() && readmissions_.begin()->first <= now_) {
      hosts_.readmit(readmissions_.begin()->second);
      readmissions_.erase(readmissions_.begin());
    }
    return !result.excluded.empty();
  }

  // Another host takes the place of a node: a spare, or the next one that the scheduler has.
  void replace(size_t node) {
    while (!arrivals_.empty() && arrivals_.front() <= now_) {
      arrivals_.erase(arrivals_.begin());
      ++spares_;
    }
    faulty_.erase(names_[node]);
    names_[node] = next_name_++;
    if (spares_ > 0) {
      --spares_;
      arrivals_.push_back(now_ + times_.replacement);
      return;
    }
    now_ = now_ + times_.replacement;
  }

  static std::string host(int64_t name) { return "h" + std::to_string(name); }

  const LargeJobOptions& options_;
  const LargeJobTimes& times_;
  Prng prng_;
  const int64_t nodes_;
  GoodputAccount account_;
  HostLedger hosts_;
  RestartBudgets budgets_;
  Instant now_;
  Trouble next_;
  std::vector<int64_t> names_;  // of the host in each place
  int64_t next_name_ = 0;
  std::map<int64_t, size_t> faulty_;       // hosts that fail again, and their places
  std::map<int64_t, Duration> recurs_in_;  // after so much training
  std::multimap<Instant, std::string> readmissions_;
  std::vector<Instant> arrivals_;  // of the next spares
  int64_t spares_ = 0;
  int64_t best_step_ = 0, resume_step_ = 0, reached_step_ = 0;
  int64_t last_save_ = 0, before_last_save_ = 0;
  int64_t rounds_without_step_ = 0;  // in a row
  int64_t rollbacks_ = 0;
  bool has_state_ = false;  // the survivors, of the newest step
  int64_t rounds_ = 0, failures_ = 0, excluded_ = 0;
};

}  // namespace

LargeJobResult run_large_job(const LargeJobOptions& options) { return LargeJobRun(options).run(); }

}  // namespace cpprun::sim
