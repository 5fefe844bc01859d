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

class Scene : public JobTest {
 public:
  void TestBody() override {}

  // ---- settings
  void spare() { has_spare_ = true; }
  void elastic() { nodes(1, 2); }
  void excludes_after(int64_t faults) { job_spec.exclude_after = faults; }
  void no_restarts() { job_spec.max_restarts = 0; }
  void stops_on_repeat() { job_spec.stops_on_repeat = true; }

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
    says(name, control::Failed{round_of(name), end, is_fatal});
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
    says("a", command);
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
      if (players.contains(name) && is_member(name)) says_started(name);
    }
  }

  // ---- what the coordinator decides
  std::string decision() {
    std::string text = placed();
    for (const auto& [host, record] : job().hosts().all()) {
      if (record.exclusion != control::Exclusion::None) text += ", host excluded";
    }
    return text;
  }
  std::string cost() const {
    std::vector<std::string> parts;
    const auto& job = *core.jobs().at(run_id);
    if (job.budget().used() > 0) parts.push_back("restart");
    if (job.hang_restart_budget().used() > 0) parts.push_back("restart after a hang");
    return parts.empty() ? "-" : text::join(parts, ", ");
  }

 private:
  bool is_member(const std::string& name) {
    return round_of(name) == job().round() && player(name).session;
  }
  void stop_if_asked(const std::string& name) {
    if (!players.contains(name) || !player(name).session) return;
    const auto* stop = heard<control::Stop>(name);
    if (stop == nullptr || stop->round != round_of(name)) return;
    if (stopped_[name] == stop->round) return;
    stopped_[name] = stop->round;
    control::Stopped stopped{round_of(name), player(name).facts.reserved_port};
    stopped.node_check = checks_[name];
    says(name, stopped);
  }
  std::string placed() {
    if (job().has_job_result()) {
      const control::JobResult& result = job().job_result();
      return result.is_success ? "success" : result.is_resumable ? "stop, resumable" : "stop";
    }
    if (phase() != Phase::Running) return "wait";
    if (job().round() == RoundNumber(1)) return "go on";
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

struct Row {
  const char* what;
  const char* setting;
  const char* decision;
  const char* cost;
  std::function<void(Scene&)> sets;
  std::function<void(Scene&)> happens;
};

constexpr const char* kError = "ValueError: x";
const auto kNothing = [](Scene&) {};
const auto kElastic = [](Scene& s) { s.elastic(); };
const auto kSpare = [](Scene& s) { s.spare(); };
const auto kPolicy = [](Scene& s) { s.excludes_after(1); };
const auto kPolicyAndSpare = [](Scene& s) { s.excludes_after(1), s.spare(); };
const auto kPolicyAndElastic = [](Scene& s) { s.excludes_after(1), s.elastic(); };
const auto kStops = [](Scene& s) { s.stops_on_repeat(); };

std::vector<Row> failures_of_workers() {
  const auto raise = [](Scene& s) { s.raises(kError); };
  const auto signal = [](int number) {
    return [number](Scene& s) { s.fails("b", Scene::ended(-number)); };
  };
  const auto twice = [](Scene& s) {
    s.raises(kError, 3);
    s.settle();
    s.raises(kError, 3);
  };
  return {
      {"a worker raises an exception", "", "restart", "restart", kNothing, raise},
      {"the same, and no restart is left", "", "stop", "-", [](Scene& s) { s.no_restarts(); },
       raise},
      {"a worker exits with a code of its own", "", "restart", "restart", kNothing,
       [](Scene& s) { s.fails("b", Scene::ended(42)); }},
      {"a worker crashes (SIGSEGV)", "", "restart", "restart", kNothing, signal(11)},
      {"a worker aborts (SIGABRT, as by NCCL's watchdog)", "", "restart", "restart", kNothing,
       signal(6)},
      {"a worker hits a memory error of the hardware (SIGBUS)", "", "restart", "restart", kNothing,
       signal(7)},
      {"the kernel kills a worker for lack of memory", "", "restart", "restart", kNothing,
       [](Scene& s) {
         WorkerExit end = Scene::ended(-9);
         end.is_oom_kill = true;
         s.fails("b", end);
       }},
      {"CUDA or HIP has no memory", "", "restart", "restart", kNothing,
       [](Scene& s) { s.raises("torch.OutOfMemoryError: CUDA out of memory"); }},
      {"a worker sees that a peer is gone", "", "restart", "restart", kNothing,
       [](Scene& s) { s.raises("RuntimeError: Connection closed by peer [10.0.0.1]:4711"); }},
      {"workers of two nodes fail in one round", "", "restart", "restart", kNothing,
       [](Scene& s) { s.raises(kError), s.fails("a", Scene::ended(1, kError)); }},
      {"a worker fails within 10 s of its start", "", "restart", "restart", kNothing,
       [](Scene& s) { s.says_failed("b"); }},
      {"the same", "--startup-failures=1", "stop", "restart",
       [](Scene& s) { s.job_spec.startup_failures = 1; }, [](Scene& s) { s.says_failed("b"); }},
      {"a module cannot be imported", "", "restart", "restart", kNothing,
       [](Scene& s) { s.raises("ModuleNotFoundError: No module named 'x'"); }},
      {"the same", "--on-repeat=stop", "stop", "restart", kStops,
       [](Scene& s) { s.raises("ModuleNotFoundError: No module named 'x'"); }},
      {"the script has a syntax error", "--on-repeat=stop", "stop", "restart", kStops,
       [](Scene& s) { s.raises("SyntaxError: invalid syntax"); }},
      {"the same failure comes twice at one step", "", "restart", "restart", kNothing, twice},
      {"the same", "--on-repeat=stop", "stop", "restart", kStops, twice},
      {"the same failure comes at another step", "--on-repeat=stop", "restart", "restart", kStops,
       [](Scene& s) {
         s.raises(kError, 3);
         s.settle();
         s.raises(kError, 4);
       }},
      {"a worker hangs", "--hang-timeout", "restart", "restart after a hang", kNothing,
       [](Scene& s) { s.hangs("b"); }},
      {"the same, and no restart after hangs is left", "--hang-timeout", "stop", "-",
       [](Scene& s) { s.no_restarts(); }, [](Scene& s) { s.hangs("b"); }},
      {"all workers end with exit code 0", "", "success", "-", kNothing,
       [](Scene& s) { s.says_done("a"), s.says_done("b"); }},
  };
}

std::vector<Row> faults_of_hosts() {
  const auto raise = [](Scene& s) { s.raises(kError); };
  const auto fatal = [](Scene& s) { s.fails("b", Scene::ended(127), true); };
  const auto raise_twice = [](Scene& s) { s.raises(kError), s.settle(), s.raises(kError); };
  return {
      {"the program cannot be started", "", "stop", "-", kNothing, fatal},
      {"the same, on one host", "--exclude-after=1, a spare", "replace, host excluded", "-",
       kPolicyAndSpare, fatal},
      {"the same, on one host", "--exclude-after=1, --nnodes=1:2", "shrink, host excluded", "-",
       kPolicyAndElastic, fatal},
      {"the same, on one host", "--exclude-after=1", "stop, host excluded", "-", kPolicy, fatal},
      {"a worker raises an exception", "--exclude-after=1, a spare", "replace, host excluded", "-",
       kPolicyAndSpare, raise},
      {"the same", "--exclude-after=1, --nnodes=1:2", "shrink, host excluded", "-",
       kPolicyAndElastic, raise},
      {"the same", "--exclude-after=1", "wait, host excluded", "restart", kPolicy, raise},
      {"the same", "--exclude-after=2, a spare", "restart", "restart",
       [](Scene& s) { s.excludes_after(2), s.spare(); }, raise},
      {"the same, twice", "--exclude-after=2, a spare", "replace, host excluded", "restart",
       [](Scene& s) { s.excludes_after(2), s.spare(); }, raise_twice},
      {"a worker hangs", "--exclude-after=1, a spare", "replace, host excluded", "-",
       kPolicyAndSpare, [](Scene& s) { s.hangs("b"); }},
      {"the node check fails after the round", "--node-check, a spare", "replace", "restart",
       kSpare, [](Scene& s) { s.fails_check("b"), s.raises(kError); }},
      {"the node check fails after the round", "--node-check, --nnodes=1:2", "shrink", "restart",
       kElastic, [](Scene& s) { s.fails_check("b"), s.raises(kError); }},
      {"the node check fails after the round", "--node-check", "wait", "restart", kNothing,
       [](Scene& s) { s.fails_check("b"), s.raises(kError); }},
      {"an operator excludes a host", "a spare", "replace, host excluded", "-", kSpare,
       [](Scene& s) { s.orders(AdminCommandKind::Exclude, "b"); }},
  };
}

std::vector<Row> losses() {
  const auto dies = [](Scene& s) { s.dies("b"); };
  const auto goes_silent = [](Scene& s) {
    s.player("b").is_silent = true;
    s.passes(limits::kNodeLease + 1s);
  };
  const auto is_unusable = [](Scene& s) { s.is_unusable("b"); };
  return {
      {"the agent of a node is killed", "", "wait", "-", kNothing, dies},
      {"the same", "--nnodes=1:2", "shrink", "-", kElastic, dies},
      {"the same", "a spare", "replace", "-", kSpare, dies},
      {"the same", "--exclude-after=1, a spare", "replace, host excluded", "-", kPolicyAndSpare,
       dies},
      {"a node goes silent (power, cable)", "", "wait", "-", kNothing, goes_silent},
      {"the same", "--nnodes=1:2", "shrink", "-", kElastic, goes_silent},
      {"the same", "a spare", "replace", "-", kSpare, goes_silent},
      {"a connection breaks, and comes back within the lease", "", "go on", "-", kNothing,
       [](Scene& s) {
         s.is_cut_off("b");
         s.passes(limits::kNodeLease / 2);
         s.returns("b", ReportedPhase::Running, 1);
       }},
      {"SIGKILL does not end a worker", "", "stop", "-", kNothing, is_unusable},
      {"the same", "--nnodes=1:2", "shrink", "-", kElastic, is_unusable},
      {"the same", "a spare", "replace", "-", kSpare, is_unusable},
      {"a node stops its workers at the end of its worker lease", "", "restart", "-", kNothing,
       [](Scene& s) { s.says_stopped("b"); }},
      {"a fetched snapshot is damaged", "--snapshot-dir", "restart", "-",
       [](Scene& s) {
         s.has("a", {30, 20}), s.has("b", {20});
       },
       [](Scene& s) {
         control::Failed failed{s.round_of("b"), {}, false};
         failed.why = "model.pt has another checksum there";
         failed.damaged_snapshot = Scene::snapshots({30})[0].id;
         s.says("b", failed);
       }},
  };
}

std::vector<Row> requests() {
  const auto leaves = [](Scene& s) { s.drains("b"), s.leaves_saved("b"), s.says_saved("a"); };
  return {
      {"a node is drained (preemption, SIGTERM)", "", "stop, resumable", "-", kNothing, leaves},
      {"the same", "--nnodes=1:2", "shrink", "-", kElastic, leaves},
      {"the same", "a spare", "replace", "-", kSpare, leaves},
      {"another node joins", "--nnodes=2:3", "grow", "-", [](Scene& s) { s.nodes(2, 3); },
       [](Scene& s) {
         s.join("c");
         s.passes(2 * limits::kScaleUpInterval);
       }},
      {"an operator restarts the workers", "", "restart", "-", kNothing,
       [](Scene& s) { s.orders(AdminCommandKind::Restart); }},
  };
}

std::vector<Row> all_rows() {
  std::vector<Row> all;
  for (const auto& part : {failures_of_workers(), faults_of_hosts(), losses(), requests()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(Decisions, AreThoseOfTheTable) {
  for (const Row& row : all_rows()) {
    SCOPED_TRACE(std::string(row.what) + " | " + row.setting);
    Scene scene;
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
  for (const Row& row : all_rows()) {
    const std::string setting = *row.setting == '\0' ? "-" : row.setting;
    table += std::string("| ") + row.what + " | " + setting + " | " + row.decision + " | " +
             row.cost + " |\n";
  }
  std::ifstream file("docs/reference/decisions.md");
  std::ostringstream page;
  page << file.rdbuf();
  EXPECT_NE(page.str().find(table), std::string::npos) << "it should have:\n" << table;
  EXPECT_GE(all_rows().size(), 40U);
}

}  // namespace
}  // namespace cpprun::test
