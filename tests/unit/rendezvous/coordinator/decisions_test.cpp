// What the coordinator decides after each kind of failure: docs/reference/decisions.md, row by row.
// Each row runs against the real core, and the page must have exactly these rows.
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::AdminCommand;
using control::AdminCommandKind;
using control::CheckState;
using control::ReportedPhase;

class DecisionScene : public JobTest {
 public:
  void TestBody() override {}

  // ---- settings
  void spare() { has_spare_ = true; }
  void elastic() { nodes(1, 2); }
  void excludes_after(int64_t faults) { job_spec.exclude_after = faults; }
  void no_restarts() { job_spec.max_restarts = 0; }
  void stops_on_repeat() { job_spec.stops_on_repeat = true; }
  void losses(int64_t max) { job_spec.max_node_losses = max; }

  void begin() {
    a_and_b_run();
    if (has_spare_) join("c");
  }

  // ---- what happens
  static WorkerExit ended(int exit_code, const std::string& error = "", int64_t step = -1) {
    WorkerExit end;
    end.pid = 4711;
    end.exit_code = exit_code;
    end.step = step;
    end.ended_at = end.started_at + std::chrono::hours(1);
    if (!error.empty()) {
      end.error = ErrorReport{};
      end.error->message = error;
    }
    return end;
  }
  void fails(const std::string& name, WorkerExit end, bool is_fatal = false) {
    end.rank = Rank(assignment(name).base_rank);
    sends(name, control::Failed{round_of(name), end, is_fatal});
  }
  void raises(const std::string& error, int64_t step = -1) { fails("b", ended(1, error, step)); }
  void hangs(const std::string& name) {
    WorkerExit end = ended(0);
    end.hang = "no heartbeat for 12.0 s";
    fails(name, end);
  }
  void orders(AdminCommandKind kind, const std::string& node = "") {
    AdminCommand command{1, kind};
    command.node = node;
    sends("a", command);
  }
  // The check that the agent runs when the round is over.
  void fails_check(const std::string& name) {
    checks_[name] = control::NodeCheck{CheckState::Failed, "no GPU"};
  }
  // All that are asked to stop do so, and all leases and graces of the dead end.
  void settle() {
    for (int turn = 0; turn < 4; ++turn) {
      for (const char* name : {"a", "b", "c"}) stop_if_asked(name);
      if (turn == 1) passes(limits::kDeathGrace);
    }
    for (const char* name : {"a", "b", "c"}) {
      if (players.contains(name) && is_member(name)) sends_started(name);
    }
  }

  // ---- what the coordinator decides
  std::string decision() {
    std::string text = placed();
    for (const auto& [host, record] : job().hosts().all()) {
      if (record.is_excluded()) text += ", host excluded";
    }
    return text;
  }
  std::string cost() const {
    std::vector<std::string> parts;
    const auto& job = *core.jobs().at(run_id);
    if (job.budget().used() > 0) parts.push_back("restart");
    if (job.hang_restart_budget().used() > 0) parts.push_back("restart after a hang");
    const RestartBudget* losses = job.node_loss_budget();
    if (losses != nullptr && losses->used() > 0) parts.push_back("node loss");
    return parts.empty() ? "-" : text::join(parts, ", ");
  }

 private:
  bool is_member(const std::string& name) {
    return round_of(name) == job().round() && player(name).session;
  }
  void stop_if_asked(const std::string& name) {
    if (!players.contains(name) || !player(name).session) return;
    const auto* stop = received<control::Stop>(name);
    if (stop == nullptr || stop->round != round_of(name)) return;
    if (stopped_[name] == stop->round) return;
    stopped_[name] = stop->round;
    control::Stopped stopped{round_of(name), player(name).facts.reserved_port};
    stopped.node_check = checks_[name];
    sends(name, stopped);
  }
  std::string placed() {
    if (job().has_job_result()) {
      const control::JobResult& result = job().job_result();
      return result.is_success ? "success" : result.is_resumable ? "stop, resumable" : "stop";
    }
    if (job().restart_delay() > Duration{}) return "delay";
    if (phase() != Phase::Running) return "wait";
    if (job().round() == RoundNumber(1)) return "continue";
    std::set<std::string> members;
    for (const char* name : {"a", "b", "c"}) {
      if (players.contains(name) && is_member(name)) members.insert(name);
    }
    if (members == std::set<std::string>{"a", "b"}) return "restart";
    if (members.size() < 2) return "shrink";
    return members.size() > 2 ? "grow" : "replace";
  }

  bool has_spare_ = false;
  std::map<std::string, RoundNumber> stopped_;
  std::map<std::string, control::NodeCheck> checks_;
};

struct DecisionRow {
  const char* what;
  const char* setting;
  const char* decision;
  const char* cost;
  std::function<void(DecisionScene&)> sets;
  std::function<void(DecisionScene&)> happens;
};

constexpr const char* kDecisionError = "ValueError: x";
const auto kDecisionNothing = [](DecisionScene&) {};
const auto kDecisionElastic = [](DecisionScene& s) { s.elastic(); };
const auto kDecisionSpare = [](DecisionScene& s) { s.spare(); };
const auto kDecisionPolicy = [](DecisionScene& s) { s.excludes_after(1); };
const auto kDecisionPolicyAndSpare = [](DecisionScene& s) { s.excludes_after(1), s.spare(); };
const auto kDecisionPolicyAndElastic = [](DecisionScene& s) { s.excludes_after(1), s.elastic(); };
const auto kDecisionStops = [](DecisionScene& s) { s.stops_on_repeat(); };

std::vector<DecisionRow> decided_failures() {
  const auto raise = [](DecisionScene& s) { s.raises(kDecisionError); };
  const auto signal = [](int number) {
    return [number](DecisionScene& s) { s.fails("b", DecisionScene::ended(-number)); };
  };
  const auto twice = [](DecisionScene& s) {
    s.raises(kDecisionError, 3);
    s.settle();
    s.raises(kDecisionError, 3);
  };
  return {
      {"a worker raises an exception", "", "restart", "restart", kDecisionNothing, raise},
      {"the same, and no restart is left", "", "stop", "-",
       [](DecisionScene& s) { s.no_restarts(); }, raise},
      {"a worker exits with a code of its own", "", "restart", "restart", kDecisionNothing,
       [](DecisionScene& s) { s.fails("b", DecisionScene::ended(42)); }},
      {"a worker crashes (SIGSEGV)", "", "restart", "restart", kDecisionNothing, signal(11)},
      {"a worker aborts (SIGABRT, as by NCCL's watchdog)", "", "restart", "restart",
       kDecisionNothing, signal(6)},
      {"a worker hits a memory error of the hardware (SIGBUS)", "", "restart", "restart",
       kDecisionNothing, signal(7)},
      {"the kernel kills a worker for lack of memory", "", "restart", "restart", kDecisionNothing,
       [](DecisionScene& s) {
         WorkerExit end = DecisionScene::ended(-9);
         end.is_oom_kill = true;
         s.fails("b", end);
       }},
      {"CUDA or HIP has no memory", "", "restart", "restart", kDecisionNothing,
       [](DecisionScene& s) { s.raises("torch.OutOfMemoryError: CUDA out of memory"); }},
      {"a worker sees that a peer is gone", "", "restart", "restart", kDecisionNothing,
       [](DecisionScene& s) {
         s.raises("RuntimeError: Connection closed by peer [10.0.0.1]:4711");
       }},
      {"workers of two nodes fail in one round", "", "restart", "restart", kDecisionNothing,
       [](DecisionScene& s) {
         s.raises(kDecisionError), s.fails("a", DecisionScene::ended(1, kDecisionError));
       }},
      {"a worker fails within 10 s of its start", "", "restart", "restart", kDecisionNothing,
       [](DecisionScene& s) { s.sends_failed("b"); }},
      {"the same", "--startup-failures=1", "stop", "restart",
       [](DecisionScene& s) { s.job_spec.startup_failures = 1; },
       [](DecisionScene& s) { s.sends_failed("b"); }},
      {"a module cannot be imported", "", "restart", "restart", kDecisionNothing,
       [](DecisionScene& s) { s.raises("ModuleNotFoundError: No module named 'x'"); }},
      {"the same", "--on-repeat=stop", "stop", "restart", kDecisionStops,
       [](DecisionScene& s) { s.raises("ModuleNotFoundError: No module named 'x'"); }},
      {"the script has a syntax error", "--on-repeat=stop", "stop", "restart", kDecisionStops,
       [](DecisionScene& s) { s.raises("SyntaxError: invalid syntax"); }},
      {"a worker raises an exception twice within 60 s", "--restart-backoff=30", "delay", "restart",
       [](DecisionScene& s) { s.job_spec.restart_backoff = 30s; }, twice},
      {"the same failure comes twice at one step", "", "restart", "restart", kDecisionNothing,
       twice},
      {"the same", "--on-repeat=stop", "stop", "restart", kDecisionStops, twice},
      {"the same failure comes at another step", "--on-repeat=stop", "restart", "restart",
       kDecisionStops,
       [](DecisionScene& s) {
         s.raises(kDecisionError, 3);
         s.settle();
         s.raises(kDecisionError, 4);
       }},
      {"a worker hangs", "--hang-timeout", "restart", "restart after a hang", kDecisionNothing,
       [](DecisionScene& s) { s.hangs("b"); }},
      {"the same, and no restart after hangs is left", "--hang-timeout", "stop", "-",
       [](DecisionScene& s) { s.no_restarts(); }, [](DecisionScene& s) { s.hangs("b"); }},
      {"the same", "--max-hangs=0", "stop", "-", [](DecisionScene& s) { s.job_spec.max_hangs = 0; },
       [](DecisionScene& s) { s.hangs("b"); }},
      {"all workers end with exit code 0", "", "success", "-", kDecisionNothing,
       [](DecisionScene& s) { s.sends_done("a"), s.sends_done("b"); }},
  };
}

std::vector<DecisionRow> decided_faults() {
  const auto raise = [](DecisionScene& s) { s.raises(kDecisionError); };
  const auto fatal = [](DecisionScene& s) { s.fails("b", DecisionScene::ended(127), true); };
  const auto raise_twice = [](DecisionScene& s) {
    s.raises(kDecisionError), s.settle(), s.raises(kDecisionError);
  };
  return {
      {"the program cannot be started", "", "stop", "-", kDecisionNothing, fatal},
      {"the same, on one host", "--exclude-after=1, a spare", "replace, host excluded", "-",
       kDecisionPolicyAndSpare, fatal},
      {"the same, on one host", "--exclude-after=1, --nnodes=1:2", "shrink, host excluded", "-",
       kDecisionPolicyAndElastic, fatal},
      {"the same, on one host", "--exclude-after=1", "stop, host excluded", "-", kDecisionPolicy,
       fatal},
      {"a worker raises an exception", "--exclude-after=1, a spare", "replace, host excluded", "-",
       kDecisionPolicyAndSpare, raise},
      {"the same", "--exclude-after=1, --nnodes=1:2", "shrink, host excluded", "-",
       kDecisionPolicyAndElastic, raise},
      {"the same", "--exclude-after=1", "wait, host excluded", "restart", kDecisionPolicy, raise},
      {"the same", "--exclude-after=2, a spare", "restart", "restart",
       [](DecisionScene& s) { s.excludes_after(2), s.spare(); }, raise},
      {"the same, twice", "--exclude-after=2, a spare", "replace, host excluded", "restart",
       [](DecisionScene& s) { s.excludes_after(2), s.spare(); }, raise_twice},
      {"a worker hangs", "--exclude-after=1, a spare", "replace, host excluded", "-",
       kDecisionPolicyAndSpare, [](DecisionScene& s) { s.hangs("b"); }},
      {"the node check fails after the round", "--node-check, a spare", "replace", "restart",
       kDecisionSpare, [](DecisionScene& s) { s.fails_check("b"), s.raises(kDecisionError); }},
      {"the node check fails after the round", "--node-check, --nnodes=1:2", "shrink", "restart",
       kDecisionElastic, [](DecisionScene& s) { s.fails_check("b"), s.raises(kDecisionError); }},
      {"the node check fails after the round", "--node-check", "wait", "restart", kDecisionNothing,
       [](DecisionScene& s) { s.fails_check("b"), s.raises(kDecisionError); }},
      {"an operator excludes a host", "a spare", "replace, host excluded", "-", kDecisionSpare,
       [](DecisionScene& s) { s.orders(AdminCommandKind::Exclude, "b"); }},
  };
}

std::vector<DecisionRow> decided_losses() {
  const auto dies = [](DecisionScene& s) { s.dies("b"); };
  const auto goes_silent = [](DecisionScene& s) {
    s.player("b").is_silent = true;
    s.passes(limits::kNodeLease + 1s);
  };
  const auto is_unusable = [](DecisionScene& s) { s.is_unusable("b"); };
  return {
      {"the agent of a node is killed", "", "wait", "-", kDecisionNothing, dies},
      {"the same", "--nnodes=1:2", "shrink", "-", kDecisionElastic, dies},
      {"the same", "a spare", "replace", "-", kDecisionSpare, dies},
      {"the same", "--exclude-after=1, a spare", "replace, host excluded", "-",
       kDecisionPolicyAndSpare, dies},
      {"the same", "--max-node-losses=1, a spare", "replace", "node loss",
       [](DecisionScene& s) { s.losses(1), s.spare(); }, dies},
      {"the same", "--max-node-losses=0, a spare", "stop", "-",
       [](DecisionScene& s) { s.losses(0), s.spare(); }, dies},
      {"a node goes silent (power, cable)", "", "wait", "-", kDecisionNothing, goes_silent},
      {"the same", "--nnodes=1:2", "shrink", "-", kDecisionElastic, goes_silent},
      {"the same", "a spare", "replace", "-", kDecisionSpare, goes_silent},
      {"the same", "--max-node-losses=0, --nnodes=1:2", "stop", "-",
       [](DecisionScene& s) { s.losses(0), s.elastic(); }, goes_silent},
      {"a connection breaks, and is restored within the lease", "", "continue", "-",
       kDecisionNothing,
       [](DecisionScene& s) {
         s.is_cut_off("b");
         s.passes(limits::kNodeLease / 2);
         s.returns("b", ReportedPhase::Running, 1);
       }},
      {"SIGKILL does not end a worker", "", "stop", "-", kDecisionNothing, is_unusable},
      {"the same", "--nnodes=1:2", "shrink", "-", kDecisionElastic, is_unusable},
      {"the same", "a spare", "replace", "-", kDecisionSpare, is_unusable},
      {"a node stops its workers at the end of its worker lease", "", "restart", "-",
       kDecisionNothing, [](DecisionScene& s) { s.sends_stopped("b"); }},
      {"the same", "--max-node-losses=1", "restart", "node loss",
       [](DecisionScene& s) { s.losses(1); }, [](DecisionScene& s) { s.sends_stopped("b"); }},
      {"a fetched snapshot is damaged", "--snapshot-dir", "restart", "-",
       [](DecisionScene& s) {
         s.has("a", {30, 20}), s.has("b", {20});
       },
       [](DecisionScene& s) {
         control::Failed failed{s.round_of("b"), {}, false};
         failed.why = "model.pt has another checksum there";
         failed.damaged_snapshot = DecisionScene::snapshots({30})[0].id;
         s.sends("b", failed);
       }},
  };
}

std::vector<DecisionRow> decided_requests() {
  const auto leaves = [](DecisionScene& s) {
    s.drains("b"), s.leaves_saved("b"), s.sends_saved("a");
  };
  return {
      {"a node is drained (preemption, SIGTERM)", "", "stop, resumable", "-", kDecisionNothing,
       leaves},
      {"the same", "--nnodes=1:2", "shrink", "-", kDecisionElastic, leaves},
      {"the same", "a spare", "replace", "-", kDecisionSpare, leaves},
      {"the same", "--max-node-losses=0, a spare", "replace", "-",
       [](DecisionScene& s) { s.losses(0), s.spare(); }, leaves},
      {"another node joins", "--nnodes=2:3", "grow", "-", [](DecisionScene& s) { s.nodes(2, 3); },
       [](DecisionScene& s) {
         s.join("c");
         s.passes(2 * limits::kScaleUpInterval);
       }},
      {"an operator restarts the workers", "", "restart", "-", kDecisionNothing,
       [](DecisionScene& s) { s.orders(AdminCommandKind::Restart); }},
  };
}

std::vector<DecisionRow> all_decisions() {
  std::vector<DecisionRow> all;
  for (const auto& part :
       {decided_failures(), decided_faults(), decided_losses(), decided_requests()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(Decisions, AreThoseOfTheTable) {
  for (const DecisionRow& row : all_decisions()) {
    SCOPED_TRACE(std::string(row.what) + " | " + row.setting);
    DecisionScene scene;
    row.sets(scene);
    scene.begin();
    row.happens(scene);
    scene.settle();
    EXPECT_EQ(scene.decision(), row.decision);
    EXPECT_EQ(scene.cost(), row.cost);
  }
}

TEST(Decisions, ThePageHasTheseRows) {
  std::string table;
  for (const DecisionRow& row : all_decisions()) {
    const std::string setting = *row.setting == '\0' ? "-" : row.setting;
    table += std::string("| ") + row.what + " | " + setting + " | " + row.decision + " | " +
             row.cost + " |\n";
  }
  std::ifstream file("docs/reference/decisions.md");
  std::ostringstream page;
  page << file.rdbuf();
  EXPECT_NE(page.str().find(table), std::string::npos) << "it should have:\n" << table;
  EXPECT_GE(all_decisions().size(), 40U);
}

}  // namespace
}  // namespace cpprun::test
