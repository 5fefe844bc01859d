// JobTest: one coordinator and the agents of a job, driven by short calls. The agents send only the
// messages of the test, and pings while time passes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/limits/rendezvous.hpp"
#include "common/version.hpp"
#include "rendezvous/coordinator/coordinator.hpp"
#include "rendezvous/observe/history_recorder.hpp"
#include "tests/unit/rendezvous/client/core/support_wire.hpp"

namespace cpprun::test {

using namespace std::chrono_literals;

// The id of the agent in the coordinator's own process.
inline constexpr Incarnation kEmbedded{UINT64_MAX};

class JobTest : public testing::Test {
 public:
  using Ending = cpprun::Job::Ending;
  using Phase = cpprun::Job::Phase;

  struct Player {
    control::Hello hello;
    control::Register facts;
    SessionAddresses session_addresses{"10.0.0.9", "10.0.0.1"};
    std::optional<SessionId> session;
    bool is_silent = false;
    std::vector<control::CoordinatorMessage> received;
    int64_t seq = 0;
  };

  // ---- the job's options
  void nodes(int64_t min, int64_t max) {
    job_spec.min_nodes = min;
    job_spec.max_nodes = max;
  }

  // ---- connections
  Player& player(const std::string& name) {
    auto [it, is_new] = players.try_emplace(name);
    Player& p = it->second;
    if (is_new) {
      p.hello.run_id = run_id;
      p.hello.version = version();
      p.hello.node = NodeId{name, Incarnation(++incarnations_)};
      p.hello.connection = 0;
      p.facts.job_spec = job_spec;
      p.facts.nproc = 2;
      p.facts.role = "default";
      p.facts.addresses = {"10.0.0." + std::to_string(incarnations_)};
      p.facts.reserved_port = 40000 + static_cast<int64_t>(incarnations_);
    }
    return p;
  }
  void connects(const std::string& name) {
    Player& p = player(name);
    p.session = SessionId(++sessions_);
    core.on_connected(*p.session, p.session_addresses);
  }
  void sends_hello(const std::string& name) {
    ++player(name).hello.connection;
    sends(name, player(name).hello);
  }
  void hello_is_refused(const std::string& name) {
    connects(name);
    sends_hello(name);
  }
  void join(const std::string& name) {
    connects(name);
    sends_hello(name);
    sends(name, player(name).facts);
  }
  // Connects again, over a new connection.
  void returns(const std::string& name, control::ReportedPhase reported_phase, int64_t in_round) {
    Player& p = player(name);
    p.facts.reported_phase = reported_phase;
    p.facts.round = RoundNumber(in_round);
    join(name);
  }
  void dies(const std::string& name) { ends(name, Ending::Fin); }
  void is_cut_off(const std::string& name) { ends(name, Ending::Reset); }
  void ends(const std::string& name, Ending how) {
    Player& p = player(name);
    if (!p.session) return;
    SessionId session = *p.session;
    p.session.reset();
    call([&](Effects& e) { core.on_closed(now, session, how, e); });
  }

  // ---- messages of agents
  void sends(const std::string& name, const control::AgentMessage& message) {
    Player& p = player(name);
    ASSERT_TRUE(p.session) << name << " is not connected";
    control::AgentMessage carried = over_the_wire(message);
    SessionId session = *p.session;
    call([&](Effects& e) { core.on_message(now, session, carried, e); });
  }
  void sends_started(const std::string& name) { sends(name, control::Started{round_of(name)}); }
  void sends_done(const std::string& name) { sends(name, control::Done{round_of(name)}); }
  void sends_stopped(const std::string& name) {
    sends(name, control::Stopped{round_of(name), player(name).facts.reserved_port});
  }
  void sends_failed(const std::string& name, int exit_code = 1, bool is_fatal = false) {
    WorkerExit end;
    end.rank = Rank(assignment(name).base_rank);
    end.pid = 4711;
    end.exit_code = exit_code;
    sends(name, control::Failed{round_of(name), end, is_fatal});
  }
  void sends_saved(const std::string& name) {
    sends(name, control::Stopped{round_of(name), player(name).facts.reserved_port,
                                 player(name).facts.snapshots, true});
  }
  void drains(const std::string& name) { sends(name, control::Draining{round_of(name)}); }
  void leaves_saved(const std::string& name) { sends(name, control::Leave{"asked to stop", true}); }
  // It has a --snapshot-dir with snapshots of these steps, which others may fetch; call it before
  // the agent joins.
  void has(const std::string& name, const std::vector<int64_t>& steps) {
    control::Register& facts = player(name).facts;
    facts.has_snapshot_dir = true;
    facts.snapshot_port = 4711;
    facts.snapshots = snapshots(steps);
  }
  // Snapshots of equal steps are the same on all nodes.
  static std::vector<control::SnapshotName> snapshots(const std::vector<int64_t>& steps) {
    std::vector<control::SnapshotName> made;
    for (int64_t step : steps) {
      std::string id = std::to_string(step);
      made.push_back({step, std::string(32 - id.size(), '0') + id});
    }
    return made;
  }
  void leaves(const std::string& name) { sends(name, control::Leave{"ended by a signal"}); }
  void is_unusable(const std::string& name) {
    sends(name, control::Leave{"it is unusable: SIGKILL did not end rank 1", false, true});
  }
  void acks(const std::string& name) { sends(name, control::Ack{true}); }
  // A round of these two nodes runs.
  void a_and_b_run() {
    join("a");
    join("b");
    if (round_of("a") == RoundNumber()) passes(limits::kLastCall);
    all({"a", "b"}, &JobTest::sends_started);
  }
  void all(const std::vector<std::string>& names, void (JobTest::*verb)(const std::string&)) {
    for (const std::string& name : names) (this->*verb)(name);
  }

  // ---- time; connected agents that are not silent ping every second
  void passes(Duration duration) {
    Instant end = now + duration;
    for (;;) {
      Instant next = std::min({end, ping_at_, std::max(now, core.next_deadline())});
      now = next;
      if (now >= core.next_deadline()) {
        call([&](Effects& e) { core.on_time(now, e); });
        ASSERT_GT(core.next_deadline(), now) << "a busy loop: the deadline stays in the past";
      }
      if (now >= ping_at_) all_ping();
      if (now >= end) return;
    }
  }

  // ---- expectations
  const control::RankAssignment& assignment(const std::string& name) {
    static const control::RankAssignment none{};
    const auto* found = newest<control::RankAssignment>(player(name).received);
    return found == nullptr ? none : *found;
  }
  RoundNumber round_of(const std::string& name) { return assignment(name).round; }
  void expect_assignment(const std::string& name, int64_t round, int64_t group_rank,
                         int64_t world_size) {
    EXPECT_EQ(assignment(name).round, RoundNumber(round)) << name;
    EXPECT_EQ(assignment(name).group_rank, group_rank) << name;
    EXPECT_EQ(assignment(name).world_size, world_size) << name;
  }
  void expect_no_assignment(const std::string& name) {
    EXPECT_FALSE(received<control::RankAssignment>(name)) << name;
  }
  template <class T>
  const T* received(const std::string& name) {
    return newest<T>(player(name).received);
  }
  void expect_stop(const std::string& name, control::StopCause cause) {
    const auto* stop = received<control::Stop>(name);
    ASSERT_TRUE(stop) << name;
    EXPECT_EQ(stop->cause, cause) << name << ": " << stop->why;
  }
  void expect_refused(const std::string& name, const std::string& word) {
    const auto* refused = received<control::Refused>(name);
    ASSERT_TRUE(refused) << name;
    EXPECT_NE(refused->why.find(word), std::string::npos) << refused->why;
    EXPECT_FALSE(player(name).session) << name << " is still connected";
  }
  void expect_decided(const std::string& name, bool is_success) {
    const auto* decided = received<control::JobResult>(name);
    ASSERT_TRUE(decided) << name;
    EXPECT_EQ(decided->is_success, is_success) << name << ": " << decided->failure_summary;
  }
  bool has_note(const std::string& event) const {
    return std::ranges::any_of(notes, [&](const LogEvent& note) { return note.event == event; });
  }
  void forget(const std::string& name) { player(name).received.clear(); }
  const cpprun::Job& job() { return *core.jobs().at(run_id); }
  Phase phase() { return job().phase(); }

  // ---- the shell
  template <class Call>
  void call(Call what) {
    Effects effects;
    what(effects);
    job_history.update(now, core);
    queue_.insert(queue_.end(), effects.begin(), effects.end());
    if (std::exchange(is_carrying_out_, true)) return;
    while (!queue_.empty()) {
      Effect effect = queue_.front();
      queue_.pop_front();
      std::visit([&](const auto& e) { carry_out(e); }, effect);
    }
    is_carrying_out_ = false;
  }

  std::string run_id = "job";
  control::JobSpec job_spec = default_job_spec();
  int secrets = 0;  // number of requested ports
  cpprun::Coordinator core{
      CoordinatorOptions{"head", Term(7), kEmbedded, limits::kWaitReminderInterval,
                         [this] { return "secret-" + std::to_string(++secrets); }}};
  cpprun::HistoryRecorder job_history;  // checked after each call, as in the server
  Instant now = Instant::from_nanoseconds(1'000'000'000'000);
  std::map<std::string, Player> players;
  std::vector<ServeStore> served;
  std::vector<std::string> dropped;  // run ids
  std::vector<LogEvent> notes;
  std::vector<control::PersistedJobState> written;  // persists immediately
  int64_t wanted_ports = 0;
  bool are_ports_given = true;  // false: WantStorePort stays unanswered
  bool are_ports_open = true;   // false: no port can be opened

 private:
  static control::JobSpec default_job_spec() {
    control::JobSpec made;
    made.min_nodes = made.max_nodes = 2;
    made.max_restarts = 3;
    made.scale_up_interval = limits::kScaleUpInterval;
    made.heartbeat = limits::kHeartbeat;
    made.lease = limits::kNodeLease;
    return made;
  }
  void all_ping() {
    ping_at_ = now + 1s;
    for (auto& [name, p] : players) {
      if (p.session && !p.is_silent) sends(name, control::Ping{++p.seq});
    }
  }
  void carry_out(const Send& effect) {
    for (auto& [name, p] : players) {
      if (p.session == effect.session) p.received.push_back(over_the_wire(effect.message));
    }
  }
  void carry_out(const Close& effect) {
    for (auto& [name, p] : players) {
      if (p.session == effect.session) p.session.reset();
    }
    call([&](Effects& e) { core.on_closed(now, effect.session, Ending::Reset, e); });
  }
  void carry_out(const WantStorePort& effect) {
    ++wanted_ports;
    if (!are_ports_given) return;
    int64_t port = are_ports_open ? 50000 + wanted_ports : 0;
    call([&](Effects& e) { core.on_store_port(now, effect.run_id, port, e); });
  }
  void carry_out(const ServeStore& effect) { served.push_back(effect); }
  void carry_out(const DropStores& effect) { dropped.push_back(effect.run_id); }
  void carry_out(const LogEvent& effect) { notes.push_back(effect); }
  void carry_out(const PersistState& effect) { written.push_back(effect.facts); }

  std::deque<Effect> queue_;  // as in the server: effects of effects come last
  bool is_carrying_out_ = false;
  uint64_t incarnations_ = 0;
  uint64_t sessions_ = 0;
  Instant ping_at_ = now;
};

}  // namespace cpprun::test
