// The order of messages to a coordinator, jobs, and its status.
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "common/limits/rendezvous.hpp"
#include "rendezvous/observe/status.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using Coordinator = JobTest;
using control::ReportedPhase;

TEST_F(Coordinator, TheFirstMessageIsAHello) {
  for (const control::AgentMessage& early :
       {control::AgentMessage(control::Register{}), control::AgentMessage(control::Ping{1}),
        control::AgentMessage(control::Leave{"x"})}) {
    connects("a");
    sends("a", early);
    expect_refused("a", "must be a hello");
  }
  EXPECT_EQ(core.session_count(), 0U);
}

TEST_F(Coordinator, TheSecondMessageIsARegister) {
  for (const control::AgentMessage& early :
       {control::AgentMessage(control::Ping{1}), control::AgentMessage(control::Done{}),
        control::AgentMessage(control::Ack{true})}) {
    connects("a");
    sends_hello("a");
    sends("a", early);
    expect_refused("a", "must register");
  }
  EXPECT_TRUE(core.jobs().empty());
}

TEST_F(Coordinator, HelloAndRegisterOnceEach) {
  join("a");
  sends("a", player("a").hello);
  expect_refused("a", "second hello");
  join("b");
  sends("b", player("b").facts);
  expect_refused("b", "second register");
}

// The next action of the node that hosts the coordinator may need this address, and those of new
// nodes.
TEST_F(Coordinator, StartsNoJobAfterTheLocalAgentEnds) {
  join("a");
  call([&](Effects& e) { core.on_host_agent_ended(now, false, e); });
  EXPECT_FALSE(player("a").session);
  join("a");
  EXPECT_FALSE(player("a").session);
  EXPECT_TRUE(core.jobs().empty());
}

TEST_F(Coordinator, DropsTheStoresOfJobsThatItTurnsAway) {
  join("a");
  call([&](Effects& e) { core.on_host_agent_ended(now, false, e); });
  EXPECT_EQ(dropped, std::vector<std::string>{player("a").hello.run_id});
}

TEST_F(Coordinator, RefusesMoreJobsThanItMayLead) {
  for (int i = 0; i < limits::kJobsPerServer; ++i) {
    const std::string name = "n" + std::to_string(i);
    player(name).hello.run_id = "job" + std::to_string(i);
    join(name);
    ASSERT_TRUE(player(name).session) << i;
  }
  player("late").hello.run_id = "late";
  join("late");
  expect_refused("late", "leads 128 jobs, and that is its limit");
  player("other").hello.run_id = "job1";
  join("other");
  EXPECT_TRUE(player("other").session) << "the limit is for further jobs";
  leaves("n0");
  join("late");
  EXPECT_TRUE(player("late").session) << "a job that has ended leaves its place";
}

TEST_F(Coordinator, KeepsRunningJobsAfterTheLocalAgentEnds) {
  a_and_b_run();
  call([&](Effects& e) { core.on_host_agent_ended(now, false, e); });
  is_cut_off("b");
  returns("b", ReportedPhase::Running, 1);
  EXPECT_TRUE(player("b").session);
  all({"a", "b"}, &Coordinator::sends_done);
  expect_decided("b", true);
}

// The coordinator's local agent has no lease that could end.
TEST_F(Coordinator, TheRoundStopsWhenTheLocalAgentEndsWithoutALeave) {
  player("a").hello.node.incarnation = kEmbedded;
  a_and_b_run();
  is_cut_off("a");
  call([&](Effects& e) { core.on_host_agent_ended(now, false, e); });
  expect_stop("b", control::StopCause::NodeLeft);
}

TEST_F(Coordinator, TheRoundStopsWhenTheLocalAgentsLeaveIsLost) {
  player("a").hello.node.incarnation = kEmbedded;
  a_and_b_run();
  call([&](Effects& e) { core.on_host_agent_ended(now, false, e); });
  EXPECT_EQ(received<control::Stop>("b"), nullptr);
  is_cut_off("a");
  expect_stop("b", control::StopCause::NodeLeft);
}

// The round would end with this process.
TEST_F(Coordinator, FormsNoRoundWhenItsProcessWasAskedToExit) {
  nodes(1, 1);
  player("a").hello.node.incarnation = kEmbedded;
  join("a");
  sends_started("a");
  join("b");
  call([&](Effects& e) { core.on_host_agent_ended(now, true, e); });
  EXPECT_FALSE(core.may_exit());
  is_cut_off("a");
  EXPECT_EQ(received<control::RankAssignment>("b"), nullptr);
  EXPECT_TRUE(core.may_exit());
}

TEST_F(Coordinator, RejectsAnotherVersionWithAMessage) {
  player("a").hello.protocol = 99;
  player("a").hello.version = "9.9.9";
  hello_is_refused("a");
  expect_refused("a", "cpprun 9.9.9 and speaks version 99");
  expect_refused("a", "use the same cpprun on all nodes");
}

TEST_F(Coordinator, RejectsControlCharactersInNames) {
  const control::Hello good = player("a").hello;
  std::vector<control::Hello> all(4, good);
  all[0].version = "\x1b[2J";
  all[1].run_id += "\nERROR forged";
  all[2].node.name =
      "\xC2\x9B"
      "2J";
  all[3].version = std::string(65, '1');
  for (control::Hello& bad : all) {
    bad.protocol = 99;  // independent of other errors
    player("a").hello = bad;
    hello_is_refused("a");
    expect_refused("a", "control characters");
    EXPECT_EQ(notes.back().text.find_first_of("\x1b\n\x9B"), std::string::npos);
  }
}

TEST_F(Coordinator, RejectsEmptyAndLongNames) {
  for (const std::string& bad : {std::string(), std::string(2000, 'x')}) {
    player("a").hello.run_id = bad;
    hello_is_refused("a");
    expect_refused("a", "empty or too long");
  }
  player("b").hello.node.name = std::string(2000, 'x');
  hello_is_refused("b");
  expect_refused("b", "empty or too long");
}

TEST_F(Coordinator, RejectsAnotherMinMaxAndNamesBoth) {
  nodes(1, 4);
  join("a");
  nodes(2, 4);
  join("b");
  expect_refused("b", "--nnodes=2:4");
  expect_refused("b", "--nnodes=1:4");
  EXPECT_EQ(job().nodes().size(), 1U);
}

TEST_F(Coordinator, RejectsInvalidNprocAndStartsNoJob) {
  for (int64_t nproc : {int64_t{0}, int64_t{-1}, int64_t{INT64_MIN}, int64_t{INT64_MAX}}) {
    player("a").facts.nproc = nproc;
    join("a");
    expect_refused("a", "1 to 4096 workers");
    EXPECT_TRUE(core.jobs().empty());
  }
}

TEST_F(Coordinator, RejectsInvalidJobOptions) {
  std::vector<std::function<void(control::Register&)>> spoilers = {
      [](auto& r) { r.job_spec.min_nodes = 0; },
      [](auto& r) { r.job_spec.min_nodes = 3; },
      [](auto& r) { r.job_spec.max_nodes = INT64_MAX; },
      [](auto& r) { r.job_spec.max_restarts = -1; },
      [](auto& r) { r.job_spec.lease = 999ms; },
      [](auto& r) { r.job_spec.lease = Duration::max(); },
      [](auto& r) { r.job_spec.heartbeat = 0s; },
      [](auto& r) { r.job_spec.heartbeat = Duration::min(); },
      [](auto& r) { r.job_spec.last_call = Duration::max(); },
      [](auto& r) { r.job_spec.scale_up_interval = Duration::max(); },
      [](auto& r) { r.job_spec.scale_up_interval = -1s; },
      [](auto& r) { r.job_spec.master_port = 70000; },
      [](auto& r) { r.reserved_port = -1; },
      [](auto& r) { r.round = RoundNumber(INT64_MAX); },
      [](auto& r) { r.round = RoundNumber(-1); },
      [](auto& r) { r.term = Term(INT64_MAX); },
      [](auto& r) { r.role = std::string(2000, 'r'); },
      [](auto& r) { r.local_addr = std::string(2000, 'r'); },
      [](auto& r) { r.job_spec.master_addr = std::string(2000, 'r'); },
      [](auto& r) { r.addresses.assign(1000, "10.0.0.1"); },
      [](auto& r) { r.addresses = {std::string(2000, 'r')}; },
  };
  for (size_t i = 0; i < spoilers.size(); ++i) {
    std::string name = "n" + std::to_string(i);
    spoilers[i](player(name).facts);
    control::Register facts = player(name).facts;
    connects(name);
    sends_hello(name);
    // The other side cannot even decode some of them; then the server ends the connection.
    auto body = control::encode(control::AgentMessage(facts));
    if (!control::decode_agent(body)) continue;
    sends(name, facts);
    expect_refused(name, "make no sense");
  }
  EXPECT_TRUE(core.jobs().empty());
}

TEST_F(Coordinator, TwoJobsDoNotMix) {
  nodes(1, 1);
  join("a");
  run_id = "other";
  join("b");
  expect_assignment("a", 1, 0, 2);
  expect_assignment("b", 1, 0, 2);
  EXPECT_NE(assignment("a").store_port, assignment("b").store_port);
  EXPECT_NE(assignment("a").term, assignment("b").term);
  sends_failed("b");
  EXPECT_EQ(received<control::Stop>("a"), nullptr);
  sends_done("a");
  acks("a");
  dies("a");
  sends_stopped("b");
  expect_assignment("b", 2, 0, 2);
}

TEST_F(Coordinator, AtMostOneJobServesItsStoreAtTheMainPort) {
  job_spec.is_store_on_main_port = true;
  job_spec.is_agent_store = true;
  job_spec.master_port = 29500;
  nodes(1, 1);
  join("a");
  EXPECT_EQ(assignment("a").master_port, 29500);
  EXPECT_EQ(assignment("a").store_port, 0);
  EXPECT_EQ(wanted_ports, 0);
  run_id = "other";
  join("b");
  expect_refused("b", "'job' already serves");
  sends_done("a");
  acks("a");
  dies("a");
  join("c");
  EXPECT_EQ(assignment("c").master_port, 29500) << "the main port is free again";
}

TEST_F(Coordinator, FixedRanks) {
  job_spec.has_fixed_ranks = true;
  nodes(3, 3);
  player("a").facts.node_rank = 2;
  player("b").facts.node_rank = 0;
  player("c").facts.node_rank = 1;
  for (const char* name : {"a", "b", "c"}) join(name);
  expect_assignment("a", 1, 2, 6);
  expect_assignment("b", 1, 0, 6);
  expect_assignment("c", 1, 1, 6);
}

TEST_F(Coordinator, FixedRanks_RejectsDuplicatesAndOutOfRange) {
  job_spec.has_fixed_ranks = true;
  join("a");  // without --node-rank it is 0
  player("b").facts.node_rank = 0;
  join("b");
  expect_refused("b", "--node-rank=0 is taken by the agent on a");
  join("c");
  expect_refused("c", "--node-rank=0 is taken");
  player("d").facts.node_rank = 2;
  join("d");
  expect_refused("d", "--node-rank=2 is not below --nnodes=2");
  player("e").facts.node_rank = -1;
  join("e");
  expect_refused("e", "--node-rank=-1");
  returns("a", ReportedPhase::Idle, 0);  // does not lose its own rank
  EXPECT_TRUE(player("a").session);
}

TEST_F(Coordinator, AnAgentWithAnotherBackendIsRefused) {
  join("a");
  job_spec.has_fixed_ranks = true;
  player("b").facts.node_rank = 1;
  join("b");
  expect_refused("b",
                 "started with --rdzv-backend=static, the job 'job' runs with "
                 "--rdzv-backend=c10d; start all agents with the same value");
}

TEST_F(Coordinator, FixedRanks_ADeathFreesTheRank) {
  job_spec.has_fixed_ranks = true;
  player("b").facts.node_rank = 1;
  a_and_b_run();
  dies("a");
  player("c").facts.node_rank = 0;
  join("c");
  sends_stopped("b");
  passes(limits::kDeathGrace);
  expect_assignment("c", 2, 0, 4);
  expect_assignment("b", 2, 1, 4);
}

TEST_F(Coordinator, FixedRanks_AReplacementWaitsForTheLeaseOfADisconnectedNode) {
  job_spec.has_fixed_ranks = true;
  player("b").facts.node_rank = 1;
  a_and_b_run();
  is_cut_off("a");
  player("c").facts.node_rank = 0;
  join("c");
  passes(job_spec.lease);
  expect_stop("b", control::StopCause::NodeLost);
  sends_stopped("b");
  expect_assignment("c", 2, 0, 4);
  expect_assignment("b", 2, 1, 4);
}

TEST_F(Coordinator, ASilentConnectionCostsNothing) {
  connects("a");
  connects("b");
  sends_hello("b");
  EXPECT_TRUE(core.next_deadline().is_never());
  dies("a");
  dies("b");
  EXPECT_EQ(core.session_count(), 0U);
}

TEST_F(Coordinator, RemembersTheOutcomesOfTheLastJobs) {
  nodes(1, 1);
  for (int i = 0; i < 2 * limits::kEndedJobs; ++i) {
    run_id = "job" + std::to_string(i);
    std::string name = "n" + std::to_string(i);
    join(name);
    sends_done(name);
    acks(name);
    dies(name);
  }
  EXPECT_LE(core.jobs().size(), static_cast<size_t>(limits::kEndedJobs));
  EXPECT_TRUE(core.jobs().contains(run_id));
}

TEST_F(Coordinator, FormsARoundOfAThousandAgents) {
  nodes(1000, 1000);
  for (int i = 0; i < 1000; ++i) join("n" + std::to_string(i));
  std::set<int64_t> ranks;
  for (int i = 0; i < 1000; ++i) ranks.insert(assignment("n" + std::to_string(i)).group_rank);
  EXPECT_EQ(ranks.size(), 1000U);
  EXPECT_EQ(assignment("n999").group_rank, 999);
  EXPECT_EQ(assignment("n999").world_size, 2000);
}

TEST_F(Coordinator, StatusShowsTheWholeState) {
  run_id = "job \xff";  // not UTF-8
  join("a");
  auto status = nlohmann::json::parse(status_json(core));
  const auto& waiting = status["jobs"].begin().value();
  EXPECT_EQ(waiting["phase"], "waiting_for_nodes");
  EXPECT_EQ(waiting["why_no_round"], "1 of at least 2 nodes joined: a; 1 missing");
  EXPECT_TRUE(waiting["nodes"][0]["group_rank"].is_null());
  join("b");
  sends_started("b");
  status = nlohmann::json::parse(status_json(core));
  const auto& running = status["jobs"].begin().value();
  EXPECT_EQ(running["phase"], "running");
  EXPECT_EQ(running["round"], 1);
  EXPECT_EQ(running["why_no_round"], "");
  EXPECT_EQ(running["restarts_used"], 0);
  EXPECT_EQ(running["nodes"][1]["state"], "running");
  EXPECT_EQ(running["nodes"][0]["state"], "starting");
  EXPECT_EQ(running["nodes"][1]["group_rank"], 1);
  is_cut_off("a");
  dies("b");
  status = nlohmann::json::parse(status_json(core));
  const auto& broken = status["jobs"].begin().value();
  EXPECT_EQ(broken["phase"], "stopping");
  EXPECT_EQ(broken["nodes"][0]["state"], "silent");
  EXPECT_EQ(broken["nodes"][1]["state"], "dead");
}

}  // namespace
}  // namespace cpprun::test
