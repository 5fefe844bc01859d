// AgentTest: one agent's core, driven by short calls. Collects its effects by kind.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "agent/core/agent.hpp"
#include "tests/unit/rendezvous/client/core/support_wire.hpp"

namespace cpprun::test {

using namespace std::chrono_literals;

// Signals by their numbers, as the core receives them.
inline constexpr int kHup = 1;
inline constexpr int kInt = 2;
inline constexpr int kQuit = 3;
inline constexpr int kKill = 9;
inline constexpr int kTerm = 15;

class AgentTest : public testing::Test {
 public:
  using Core = agent::Agent;
  using State = Core::State;
  using How = agent::Finish::How;
  using ReportedPhase = control::ReportedPhase;
  using StopCause = control::StopCause;

  AgentTest() {
    call([&](agent::Effects& e) { core.start(now, e); });
  }

  // It has --snapshot-dir. Call this first.
  void has_folder(bool keeps_replicas = false) {
    agent::AgentOptions with = options();
    with.facts.has_snapshot_dir = true;
    with.facts.keeps_replicas = keeps_replicas;
    core = Core(with);
    call([&](agent::Effects& e) { core.start(now, e); });
  }
  static control::SnapshotName snapshot(int64_t step) { return {step, std::string(32, 'a')}; }
  // It has --node-check, in a job of at most `nodes`. Call this first.
  void has_node_check(int64_t nodes) {
    agent::AgentOptions with = options();
    with.has_node_check = true;
    with.facts.job_spec.max_nodes = nodes;
    core = Core(with);
    call([&](agent::Effects& e) { core.start(now, e); });
  }
  // The check has ended; `why`: empty: it has passed.
  void is_checked(const std::string& why) {
    call([&](agent::Effects& e) { core.on_node_checked(now, why, e); });
  }
  void sees(std::vector<control::SnapshotName> snapshots) {
    call([&](agent::Effects& e) { core.on_snapshots(now, snapshots, e); });
  }
  void has_fetched() {
    call([&](agent::Effects& e) { core.on_fetched(now, e); });
  }
  // An assignment in which a neighbour may have replicas of this node's shards.
  void gets_assignment_to_fetch_replicas(int64_t round, bool fetches_too = false) {
    control::RankAssignment assignment = assignment_of(round);
    if (fetches_too) assignment.resume = control::ResumePoint{snapshot(20), "10.0.0.3", 4711};
    assignment.snapshot_secret = "secret";
    assignment.replicas_of = control::PeerAddress{"10.0.0.4", 4712};
    assignment.replicas_at = control::PeerAddress{"10.0.0.5", 4713};
    receives(assignment);
  }
  void has_sought() {
    call([&](agent::Effects& e) { core.on_replicas_fetched(now, e); });
  }
  void fetch_fails(bool is_damaged) {
    Error error{ErrorKind::System, "it could not be fetched"};
    call([&](agent::Effects& e) { core.on_fetch_failed(now, error, is_damaged, e); });
  }

  // ---- the connection
  void connects() {
    call([&](agent::Effects& e) { core.on_connected(now, {"10.0.0.2"}, kHead, e); });
  }
  void is_welcomed(Duration heartbeat = 1s) {
    control::Registered welcome;
    welcome.term = Term(term);
    welcome.heartbeat = heartbeat;
    welcome.lease = heartbeat * 5;
    receives(welcome);
  }
  void disconnects() {
    call([&](agent::Effects& e) { core.on_disconnected(now, e); });
  }
  // Connected, registered, and its first ping answered.
  void is_in_touch() {
    connects();
    is_welcomed();
    is_granted(4s);
  }

  // ---- messages of the coordinator
  void receives(const control::CoordinatorMessage& message) {
    control::CoordinatorMessage carried = over_the_wire(message);
    call([&](agent::Effects& e) { core.on_message(now, carried, e); });
  }
  void is_granted(Duration worker_lease) {
    const auto* ping = newest<control::Ping>(sent_messages);
    ASSERT_TRUE(ping) << "no ping was sent";
    receives(control::Pong{ping->seq, worker_lease});
  }
  control::RankAssignment assignment_of(int64_t round) const {
    control::RankAssignment assignment;
    assignment.term = Term(term);
    assignment.round = RoundNumber(round);
    assignment.group_size = 1;
    assignment.world_size = assignment.role_world_size = 2;
    return assignment;
  }
  void gets_assignment(int64_t round, int64_t restart_count = 0) {
    control::RankAssignment assignment = assignment_of(round);
    assignment.restart_count = restart_count;
    receives(assignment);
  }
  // An assignment that begins with a snapshot on another node.
  void gets_assignment_to_fetch(int64_t round) {
    control::RankAssignment assignment = assignment_of(round);
    assignment.resume = control::ResumePoint{snapshot(20), "10.0.0.3", 4711};
    assignment.snapshot_secret = "secret";
    receives(assignment);
  }
  void is_stopped(int64_t round, StopCause cause = StopCause::Failure) {
    const bool is_failure = cause == StopCause::Failure;
    receives(
        control::Stop{RoundNumber(round), cause, "a test stops it",
                      is_failure ? control::RestartCharge::Failure : control::RestartCharge::None});
  }
  void waits(bool is_spare) { receives(control::Wait{"a reason", is_spare, false}); }
  void has_job_result(bool is_success) {
    receives(control::JobResult{is_success, is_success ? "" : "rank 0 died"});
  }
  void bye() { receives(control::Bye{}); }

  // ---- events on this node
  void worker_ends(int64_t local_rank, int exit_code) {
    WorkerExit end;
    end.local_rank = LocalRank(local_rank);
    end.exit_code = exit_code;
    call([&](agent::Effects& e) { core.on_worker_exit(now, end, e); });
  }
  // The exit with the last lines follows with worker_ends().
  void worker_fails(int64_t local_rank, int exit_code) {
    WorkerExit end;
    end.local_rank = LocalRank(local_rank);
    end.exit_code = exit_code;
    call([&](agent::Effects& e) { core.on_worker_failed(now, end, e); });
  }
  // The worker reports its steps, and has made none; before its exit.
  void makes_no_step(int64_t local_rank) { core.on_no_step(LocalRank(local_rank)); }
  void are_killed_by_reaper() {
    call([&](agent::Effects& e) { core.on_workers_killed(now, e); });
  }
  void all_quiet() {
    call([&](agent::Effects& e) { core.on_all_workers_gone(now, e); });
  }
  void is_stuck() {
    call([&](agent::Effects& e) { core.on_stuck("rank 1 (pid 4711)", e); });
  }
  void files_are_ready() {
    call([&](agent::Effects& e) { core.on_prepared(now, e); });
  }
  void has_spawned() {
    call([&](agent::Effects& e) { core.on_started(e); });
  }
  void start_fails(ErrorKind kind = ErrorKind::BadValue) {
    Error error{kind, "no such program"};
    call([&](agent::Effects& e) { core.on_start_failed(now, error, e); });
  }
  void signal(int number) {
    call([&](agent::Effects& e) { core.on_signal(now, number, e); });
  }
  // Pings stay unanswered unless `answered`.
  void passes(Duration duration, bool answered = false) {
    Instant end = now + duration;
    while (core.next_deadline() <= end && !finish) {
      Instant due = core.next_deadline();
      now = std::max(now, due);
      auto pings = count_of<control::Ping>(sent_messages);
      call([&](agent::Effects& e) { core.on_time(now, e); });
      ASSERT_GT(core.next_deadline(), now) << "a busy loop: the deadline stays in the past";
      if (answered && count_of<control::Ping>(sent_messages) > pings) is_granted(4s);
    }
    now = end;
  }
  void passes_answered(Duration duration) { passes(duration, true); }

  // A round runs.
  void runs(int64_t round = 1) {
    if (!is_connected) is_in_touch();
    gets_assignment(round);
    ASSERT_EQ(core.state(), State::Running);
  }

  // ---- expectations
  template <class T>
  const T* newest_sent() const {
    return newest<T>(sent_messages);
  }
  template <class T>
  int64_t times() const {
    return count_of<T>(sent_messages);
  }
  void forget() {
    saves_ended.clear();
    sent_messages.clear();
    stops.clear();
    worker_leases.clear();
    started.clear();
  }
  void expect_state(State state) { EXPECT_EQ(core.state(), state); }
  void expect_no_finish() { EXPECT_FALSE(finish) << finish->text; }
  void expect_finish(How how) {
    ASSERT_TRUE(finish);
    EXPECT_EQ(finish->how, how) << finish->text;
    EXPECT_EQ(core.state(), State::Ended);
    EXPECT_TRUE(core.next_deadline().is_never());
  }

  template <class Call>
  void call(Call what) {
    agent::Effects effects;
    what(effects);
    for (const agent::Effect& effect : effects) {
      std::visit([&](const auto& e) { carry_out(e); }, effect);
    }
  }

  static agent::AgentOptions options() {
    agent::AgentOptions made;
    made.hello.run_id = "job";
    made.hello.node = NodeId{"node0", Incarnation(1)};
    made.facts.nproc = 2;
    made.facts.job_spec.lease = 5s;
    made.join_timeout = 600s;
    made.stop_grace = 30s;
    return made;
  }

  int64_t term = 1;
  Instant now = Instant::from_nanoseconds(1'000'000'000'000);
  bool is_connected = false;
  int64_t port = 40000;
  std::vector<control::AgentMessage> sent_messages;
  std::vector<agent::StopWorkers> stops;
  static inline const Endpoint kHead{"10.0.0.1", 29500};
  int reconnects = 0, warnings = 0;
  std::optional<agent::Routes> routes;
  std::optional<agent::BecomeCoordinator> taken_over;
  std::vector<int> saves_ended;  // signals
  std::vector<Instant> worker_leases;
  int scans = 0;   // number of snapshot scans
  int checks = 0;  // number of node checks
  std::vector<agent::FetchSnapshot> fetches;
  int dropped_fetches = 0;
  std::vector<agent::FetchReplicas> sought;
  std::vector<std::optional<control::PeerAddress>> kept_of;  // searched replicas, newest last
  std::vector<std::string> secrets;                          // served replicas, newest last
  bool has_slow_files = false;        // files_are_ready() is called by the test
  bool has_slow_spawns = false;       // has_spawned() or start_fails() is called by the test
  std::vector<RoundNumber> prepared;  // rounds
  std::vector<control::RankAssignment> started;
  std::vector<agent::FirstFailure> failures;
  std::optional<agent::Disconnect> disconnect;
  std::optional<agent::Finish> finish;
  Core core{options()};

 private:
  void carry_out(const agent::SendMessage& effect) {
    if (std::holds_alternative<control::Hello>(effect.message)) is_connected = true;
    sent_messages.push_back(over_the_wire(effect.message));
  }
  void carry_out(const agent::Disconnect& effect) { disconnect = effect; }
  void carry_out(const agent::Reconnect&) { ++reconnects; }
  void carry_out(const agent::Routes& effect) { routes = effect; }
  void carry_out(const agent::BecomeCoordinator& effect) { taken_over = effect; }
  void carry_out(const agent::PrepareRound& effect) {
    prepared.push_back(effect.round);
    if (!has_slow_files) files_are_ready();
  }
  void carry_out(const agent::StartWorkers& effect) {
    started.push_back(effect.assignment);
    if (!has_slow_spawns) has_spawned();
  }
  void carry_out(const agent::StopWorkers& effect) { stops.push_back(effect); }
  void carry_out(const agent::ReservePort&) {
    call([&](agent::Effects& e) { core.on_port(now, ++port, e); });
  }
  void carry_out(const agent::SetWorkerLease& effect) { worker_leases.push_back(effect.deadline); }
  void carry_out(const agent::FirstFailure& effect) { failures.push_back(effect); }
  void carry_out(const agent::LogEvent& effect) {
    warnings += effect.level == agent::LogEvent::Level::Warning ? 1 : 0;
  }
  void carry_out(const agent::EndSaving& effect) { saves_ended.push_back(effect.signal); }
  void carry_out(const agent::ScanSnapshots&) { ++scans; }
  void carry_out(const agent::FetchSnapshot& effect) { fetches.push_back(effect); }
  void carry_out(const agent::DropFetch&) { ++dropped_fetches; }
  void carry_out(const agent::RunNodeCheck&) { ++checks; }
  void carry_out(const agent::FetchReplicas& effect) { sought.push_back(effect); }
  void carry_out(const agent::KeepReplicas& effect) { kept_of.push_back(effect.of); }
  void carry_out(const agent::ServeSnapshots& effect) { secrets.push_back(effect.secret); }
  void carry_out(const agent::Finish& effect) {
    EXPECT_FALSE(finish) << "finished twice";
    finish = effect;
  }
};

}  // namespace cpprun::test
