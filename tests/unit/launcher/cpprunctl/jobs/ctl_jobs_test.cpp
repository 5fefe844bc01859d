// cpprunctl's display of the answers of agents and coordinators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/cpprunctl/admin/job_choice.hpp"
#include "launcher/cpprunctl/command_line/completion_script.hpp"
#include "launcher/cpprunctl/jobs/gpus.hpp"
#include "launcher/cpprunctl/jobs/job_tables.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"
#include "launcher/report/tail.hpp"
#include "launcher/report/text_table.hpp"

namespace cpprun::ctl {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

admin::NodeView view_of(const std::string& run_id, int64_t pid, bool is_host) {
  admin::NodeView view;
  view.run_id = run_id;
  view.node = "n" + std::to_string(pid);
  view.pid = pid;
  view.is_host = is_host;
  view.state = "running";
  view.snapshot_step = 120;
  admin::WorkerView worker{pid, 0, pid + 1};
  worker.progress = Heartbeat{42, 7, 2, 250ms, 12ms};
  worker.memory_bytes = 3LL << 29;
  worker.stderr_file = "/logs/stderr.log";
  view.workers.push_back(worker);
  return view;
}

LocalJob job_of(const std::string& run_id, int64_t pid, bool is_host = false) {
  return {{pid, "x"}, view_of(run_id, pid, is_host), ""};
}

TEST(CtlJobs, FindsAgentsByTheirSocketNames) {
  const std::string text =
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000: 00000002 00000000 00010000 0001 01 100 @cpprun/ctl/70.0123456789abcdef\n"
      "0000: 00000003 00000000 00000000 0001 03 101 @cpprun/ctl/70.0123456789abcdef\n"
      "0000: 00000002 00000000 00010000 0001 01 102 @cpprun/ctl/9.ff\n"
      "0000: 00000002 00000000 00010000 0005 01 103 @cpprun/agent/0123\n"
      "0000: 00000002 00000000 00010000 0001 01 104 @cpprun/ctl/nonsense\n"
      "0000: 00000002 00000000 00010000 0001 01 105 /run/cpprun/ctl/5.aa\n"
      "0000: 00000002 00000000 00010000 0001 01 106\n";
  const std::vector<LocalAgent> agents = agents_in(text);
  ASSERT_EQ(agents.size(), 2u);
  EXPECT_EQ(agents[0].pid, 9);
  EXPECT_EQ(agents[1].socket, "cpprun/ctl/70.0123456789abcdef");
}

TEST(CtlJobs, DecodesAWholeView) {
  const admin::NodeView view = view_of("toy", 7, true);
  const Result<admin::NodeView> decoded = decode_node_view(encode(view));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(encode(*decoded), encode(view));
  EXPECT_EQ(decoded->workers.at(0).progress->step_takes, 12ms);
}

TEST(CtlJobs, SurvivesInvalidViews) {
  EXPECT_FALSE(decode_node_view("[]").ok());
  EXPECT_FALSE(decode_status("{").ok());
  const Result<admin::NodeView> odd = decode_node_view(
      R"({"run_id":7,"pid":"x","workers":[1,{"rank":1e99,"step":2,"step_s":-1}],"up_s":1e300})");
  ASSERT_TRUE(odd.ok());
  EXPECT_EQ(odd->run_id, "");
  EXPECT_EQ(odd->workers.at(0).progress->step, 2);
  const auto jobs = decode_status(R"({"jobs":{"a":7,"b":{"nodes":{},"snapshot":[]}}})");
  ASSERT_TRUE(jobs.ok());
  EXPECT_EQ(jobs->size(), 1u);
}

// Any program may answer at the endpoint.
TEST(CtlJobs, TakesNoAnswerThatIsNestedTooDeeply) {
  constexpr size_t kDepth = 1 << 20;
  const std::string deep =
      R"({"jobs":{"a":{"nodes":)" + std::string(kDepth, '[') + std::string(kDepth, ']') + "}}}";
  EXPECT_FALSE(decode_status(deep).ok());
  EXPECT_THAT(joined_json({deep}, deep), HasSubstr(R"("agents": [])"));
}

TEST(CtlJobs, UsesTheOnlyJobUnlessOneIsNamed) {
  const std::vector<LocalJob> both = {job_of("a", 1), job_of("b", 2), job_of("b", 3, true)};
  EXPECT_THAT(agents_of(both, "").error().text, HasSubstr("name one: a, b"));
  EXPECT_THAT(agents_of(both, "c").error().text, HasSubstr("there is: a, b"));
  EXPECT_THAT(agents_of({}, "").error().text, HasSubstr("no job of yours"));
  const auto found = agents_of(both, "b");
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 2u);
  EXPECT_TRUE(found->front().view.is_host) << "it is asked first";
  EXPECT_EQ(agents_of({job_of("a", 1)}, "")->front().view.run_id, "a");
}

TEST(CtlJobs, AUniquePrefixNamesAJob) {
  const std::vector<LocalJob> all = {job_of("abc", 1), job_of("abd", 2), job_of("ab", 3)};
  EXPECT_EQ(agents_of(all, "abd")->front().view.run_id, "abd");
  EXPECT_EQ(agents_of(all, "ab")->front().view.run_id, "ab") << "a whole name comes first";
  EXPECT_EQ(agents_of({all[0], all[1]}, "abc")->size(), 1u);
  EXPECT_EQ(agents_of({job_of("0c6f-11", 1), job_of("77", 2)}, "0c")->front().view.run_id,
            "0c6f-11");
  EXPECT_THAT(agents_of(all, "a").error().text, HasSubstr("begin with 'a': ab, abc, abd"));
}

TEST(CtlJobs, PsHasOneRowPerJob) {
  std::vector<LocalJob> all = {job_of("a", 1), job_of("b", 2), job_of("a", 3)};
  all[0].view.state = "joining";
  for (LocalJob& job : all) {
    job.view.group_size = 2;
    job.view.world_size = 8;
    job.view.title = "train.py";
    job.view.max_restarts = 3;
  }
  all[1].view.state = "stopping";
  all[2].view.restarts_used = 1;
  all[2].view.up = 9s;
  EXPECT_EQ(ps_text(all),
            "JOB  STATE       NODES  WORKERS  RESTARTS  UP     SCRIPT\n"
            "a    running     2      8        1/3       9.0 s  train.py\n"
            "b    restarting  2      8        0/3       0 us   train.py\n");
  EXPECT_THAT(joined_json({R"({"state":"joining"})"}, ""), HasSubstr(R"("job_state": "waiting")"));
}

TEST(CtlJobs, ChangesOnlyOwnJobsThatAreNotNamed) {
  std::vector<LocalJob> all = {job_of("mine", 1), job_of("other", 2)};
  all[0].owner = 1000;
  all[1].owner = 1001;
  EXPECT_EQ(agents_to_change(all, "", 1000)->front().view.run_id, "mine");
  EXPECT_EQ(agents_to_change(all, "oth", 1000)->front().view.run_id, "other");
  EXPECT_THAT(agents_to_change({all[1]}, "", 1000).error().text, HasSubstr("to other users"));
  EXPECT_THAT(agents_to_change({}, "", 1000).error().text, HasSubstr("no job of yours"));
  all[1].owner = 1000;
  EXPECT_THAT(agents_to_change(all, "", 1000).error().text, HasSubstr("name one: mine, other"));
  all[1].view.world_size = 4;
  all[1].view.title = "train.py";
  all[1].view.group_size = 2;
  all[1].view.min_nodes = 1;
  EXPECT_FALSE(may_end_by_drain({all[1]}));
  all[1].view.min_nodes = 2;
  EXPECT_TRUE(may_end_by_drain({all[1]}));
  EXPECT_EQ(job_text({all[1]}), "job other (train.py, pid 2, 4 workers)");
}

TEST(CtlJobs, ReportsARankOfAnotherNode) {
  const std::vector<LocalJob> agents = {job_of("a", 1), job_of("a", 2)};
  EXPECT_EQ(worker_of(agents, 2)->job, &agents[1]);
  EXPECT_THAT(worker_of(agents, 5).error().text, HasSubstr("these do: 1, 2"));
}

TEST(CtlJobs, StatusSortsRanksByNode) {
  const auto jobs = decode_status(
      R"({"jobs":{"toy":{"phase":"running","round":3,"min_nodes":1,"max_nodes":3,"restarts_used":1,
      "max_restarts":4,"snapshot":{"step":90},"nodes":[
      {"name":"late","state":"idle","nproc":4,"address":"10.0.0.3","group_rank":null},
      {"name":"b","state":"running","nproc":4,"address":"10.0.0.2","group_rank":1},
      {"name":"a\u001b[2J","state":"running","nproc":2,"address":"10.0.0.1","group_rank":0}]}}})");
  LocalJob agent = job_of("toy", 1);
  agent.view.title = "train.py";
  agent.view.coordinator = "n1:29400";
  agent.view.run_folder = "/logs/toy";
  const std::string text = status_text("toy", &jobs->at("toy"), {agent});
  EXPECT_THAT(text, HasSubstr("running, round 3, --nnodes 1:3, restarts 1/4, newest snapshot: "
                              "step 90\n"));
  EXPECT_THAT(text,
              HasSubstr("step 90\ntrain.py, up 0 us, coordinator n1:29400, logs /logs/toy\n"));
  EXPECT_THAT(text, HasSubstr("a?[2J  running  0-1    10.0.0.1\n"));
  EXPECT_THAT(text, HasSubstr("b      running  2-5    10.0.0.2\n"));
  EXPECT_THAT(text, HasSubstr("late   waiting  -      10.0.0.3\n"));
  EXPECT_THAT(text, HasSubstr("1     n1    2    42    12.0 ms    250.0 ms   1.5 GiB\n"));
  EXPECT_THAT(ps_text({job_of("toy", 1)}), HasSubstr("toy"));
  EXPECT_THAT(ps_text({}), HasSubstr("no job of yours"));
}

TEST(CtlJobs, StatusShowsTheBudgetsInUse) {
  const auto jobs = decode_status(
      R"({"jobs":{"toy":{"max_restarts":4,"hang_restarts_used":1,"max_hangs":2,"node_losses_used":3,
      "max_node_losses":9},"plain":{"max_restarts":4,"max_hangs":4,"max_node_losses":null}}})");
  EXPECT_THAT(status_text("toy", &jobs->at("toy"), {}),
              HasSubstr(", restarts 0/4, after hangs 1/2, node losses 3/9, newest"));
  EXPECT_THAT(status_text("plain", &jobs->at("plain"), {}), HasSubstr(", restarts 0/4, newest"));
}

TEST(CtlJobs, StatusShowsTheShareOfTraining) {
  const auto jobs = decode_status(
      R"({"jobs":{"toy":{"goodput":{"spent_s":{"training":90,"redone":10,"waiting":-1}}},
      "new":{"goodput":null},"quiet":{"goodput":{"spent_s":{"unknown":5}}}}})");
  EXPECT_THAT(status_text("toy", &jobs->at("toy"), {}),
              HasSubstr("\ntrained 90.0 % of 1 min 40 s; lost: 10.0 s redone steps\n"));
  for (const char* name : {"new", "quiet"}) {
    EXPECT_THAT(status_text(name, &jobs->at(name), {}), Not(HasSubstr("train"))) << name;
  }
}

TEST(CtlJobs, GroupsNodesByDifference) {
  JobStatus job;
  for (int64_t i = 0; i < 1000; ++i) {
    job.nodes.push_back(
        {"n" + std::to_string(i), i == 417 ? "silent" : "running", "10.0.0.1", 8, i, ""});
  }
  job.nodes.push_back({"spare", "waiting", "10.0.9.9", 8, std::nullopt, ""});
  const std::string text = status_text("toy", &job, {});
  EXPECT_THAT(text, HasSubstr("n0 to n416    running  0-3335     417 nodes\n"));
  EXPECT_THAT(text, HasSubstr("n417          silent   3336-3343  10.0.0.1\n"));
  EXPECT_THAT(text, HasSubstr("n418 to n999  running  3344-7999  582 nodes\n"));
  EXPECT_THAT(text, HasSubstr("spare         waiting  -          10.0.9.9\n"));
}

TEST(CtlJobs, TheSlowestRankIsBehindOrHasTheLongestStep) {
  std::vector<LocalJob> agents = {job_of("a", 1), job_of("a", 2), job_of("a", 3)};
  agents[1].view.workers[0].progress->step_takes = 30ms;
  EXPECT_EQ(slowest_text(agents), "slowest: rank 2, 30.0 ms a step, at step 42\n");
  agents[2].view.workers[0].progress->step = 40;
  EXPECT_EQ(slowest_text(agents), "slowest: rank 3, 12.0 ms a step, at step 40, 2 behind\n");
  for (LocalJob& job : agents) job.view.workers[0].progress.reset();
  EXPECT_EQ(slowest_text(agents), "");
}

TEST(CtlJobs, WorkersAreSortedByWhatTheUserAsksFor) {
  std::vector<LocalJob> agents = {job_of("a", 1), job_of("a", 2)};
  agents[1].view.workers[0].progress->step = 50;
  const std::string by_rank = status_text("a", nullptr, agents);
  const std::string by_step = status_text("a", nullptr, agents, WorkerOrder::Step);
  EXPECT_LT(by_rank.find("\n1     n1"), by_rank.find("\n2     n2"));
  EXPECT_GT(by_step.find("\n1     n1"), by_step.find("\n2     n2"));
  EXPECT_EQ(worker_order("memory"), WorkerOrder::Memory);
  EXPECT_EQ(worker_order("nonsense"), WorkerOrder::Rank);
  EXPECT_EQ(next(WorkerOrder::Memory), WorkerOrder::Rank);
}

TEST(CtlJobs, StatesHaveColours) {
  EXPECT_THAT(ps_text({job_of("toy", 1)}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(ps_text({job_of("toy", 1)}, true), HasSubstr("\x1b[32mrunning\x1b[0m"));
}

TEST(CtlJobs, AFrameFitsItsTerminal) {
  EXPECT_EQ(frame("abc\nd\n", 24, 2), "\x1b[Hab\x1b[K\r\nd\x1b[K\r\n\x1b[J");
  EXPECT_THAT(frame("1\n2\n3\n4\n5\n", 4, 80), HasSubstr("2\x1b[K\r\n... and 3 lines more\x1b[K"));
  EXPECT_THAT(frame("1\n2\n3\n4\n5\n", 5, 80, "q: quit"),
              HasSubstr("2\x1b[K\r\n... and 3 lines more\x1b[K\r\nq: quit\x1b[K"));
  EXPECT_THAT(frame("\x1b[1mabcd\x1b[0m\n", 4, 2), HasSubstr("\x1b[1mab\x1b[0m\x1b[K"));
}

TEST(CtlJobs, CompletesSubcommands) {
  const std::vector<CommandHelp> commands = {{"ps", "Jobs", {"--json"}},
                                             {"snapshot ls", "It's a list", {"--json", "-x"}}};
  EXPECT_THAT(completion_script("bash", commands), HasSubstr("    ' ') words='ps snapshot' ;;\n"));
  EXPECT_THAT(completion_script("bash", commands), HasSubstr("'snapshot ') words='ls' ;;\n"));
  EXPECT_THAT(completion_script("fish", commands), HasSubstr("-a ls -d 'It\\'s a list'\n"));
  EXPECT_THAT(completion_script("zsh", commands), HasSubstr("#compdef cpprunctl\n"));
}

TEST(CtlJobs, ShortensDurations) {
  EXPECT_EQ(duration_text(0.00034), "340 us");
  EXPECT_EQ(duration_text(0.0124), "12.4 ms");
  EXPECT_EQ(duration_text(3.24), "3.2 s");
  EXPECT_EQ(duration_text(724), "12:04");
  EXPECT_EQ(duration_text(11524), "3:12:04");
  EXPECT_EQ(duration_text(-1), "?");
}

TEST(CtlJobs, ShortensMemory) {
  EXPECT_EQ(memory_text(0), "0 KiB");
  EXPECT_EQ(memory_text(348'160), "340 KiB");
  EXPECT_EQ(memory_text(13'002'342), "12.4 MiB");
  EXPECT_EQ(memory_text(3LL << 30), "3.0 GiB");
  EXPECT_EQ(memory_text(-1), "?");
}

TEST(CtlJobs, ParsesNvidiaSmi) {
  const auto gpus = parse_gpus(
      "0, NVIDIA H100 80GB HBM3, 98, 70012, 81559\n1, NVIDIA H100 80GB HBM3, 0, 4, 81559\n"
      "No devices were found\nnonsense, 1, 2, 3, 4\n");
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_THAT(gpus_text(gpus), HasSubstr("0    98 %  70012 of 81559 MiB  NVIDIA H100 80GB HBM3\n"));
  EXPECT_EQ(gpus_text(parse_gpus("NVIDIA-SMI has failed\n")), "");
}

}  // namespace
}  // namespace cpprun::ctl
