// Arguments, environment and line prefix of a worker.
#include "agent/core/worker_environment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "agent/core/line_prefix.hpp"

namespace cpprun::agent {
namespace {

class AgentWorkerEnvironment : public testing::Test {
 protected:
  AgentWorkerEnvironment() {
    config.rendezvous.run_id = "my-job";
    config.workers.nproc = 2;
    config.workers.role = "trainer";
    config.workers.program = {"python3", "-u", "train.py"};
    config.max_restarts = 3;
    config.signals_text = "SIGTERM,SIGINT";
    config.environment = {"PATH=/bin", "RANK=77", "RANKED=1"};
    assignment.round = RoundNumber(5);
    assignment.group_rank = 1;
    assignment.group_size = 2;
    assignment.base_rank = 4;
    assignment.world_size = 6;
    assignment.base_role_rank = 2;
    assignment.role_world_size = 4;
    assignment.master_addr = "10.0.0.1";
    assignment.master_port = 40001;
    assignment.restart_count = 2;
    assignment.max_restarts = 3;
    place = LaunchContext{"/logs/error.json", "10.0.0.1:50001", "token", "cpprun/agent/1",
                          "node1.cluster.org"};
  }
  std::map<std::string, std::string> environment(int local_rank) {
    std::map<std::string, std::string> all;
    for (const std::string& entry : worker_environment(config, assignment, place, local_rank)) {
      size_t at = entry.find('=');
      bool is_new = all.emplace(entry.substr(0, at), entry.substr(at + 1)).second;
      EXPECT_TRUE(is_new) << entry << " is there twice";
    }
    return all;
  }

  AgentConfig config;
  control::RankAssignment assignment;
  LaunchContext place;
};

TEST_F(AgentWorkerEnvironment, SetsTheVariablesOfTheContract) {
  auto variables = environment(1);
  std::map<std::string, std::string> expected = {
      {"LOCAL_RANK", "1"},
      {"RANK", "5"},
      {"GROUP_RANK", "1"},
      {"ROLE_RANK", "3"},
      {"ROLE_NAME", "trainer"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"WORLD_SIZE", "6"},
      {"GROUP_WORLD_SIZE", "2"},
      {"ROLE_WORLD_SIZE", "4"},
      {"MASTER_ADDR", "10.0.0.1"},
      {"MASTER_PORT", "40001"},
      {"TORCHELASTIC_RESTART_COUNT", "2"},
      {"TORCHELASTIC_MAX_RESTARTS", "3"},
      {"TORCHELASTIC_RUN_ID", "my-job"},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
      {"TORCHELASTIC_ERROR_FILE", "/logs/error.json"},
      {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT"},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
      {"CPPRUN_ROUND", "5"},
      {"CPPRUN_STORE", "10.0.0.1:50001"},
      {"CPPRUN_AGENT", "cpprun/agent/1"},
      {"CPPRUN_AGENT", "cpprun/agent/1"},
      {"PATH", "/bin"},
      {"RANKED", "1"},
  };
  for (const auto& [name, value] : expected) EXPECT_EQ(variables[name], value) << name;
  EXPECT_FALSE(variables.contains("OMP_NUM_THREADS"));
  EXPECT_FALSE(variables.contains("CUDA_VISIBLE_DEVICES"));
}

TEST_F(AgentWorkerEnvironment, KeepsVariablesOfTheUser) {
  config.environment = {"TORCH_NCCL_ASYNC_ERROR_HANDLING=0", "OMP_NUM_THREADS=8"};
  EXPECT_EQ(environment(0)["TORCH_NCCL_ASYNC_ERROR_HANDLING"], "0");
  EXPECT_EQ(environment(0)["OMP_NUM_THREADS"], "8");
}

TEST_F(AgentWorkerEnvironment, SetsOneThreadByDefault) {
  config.workers.set_omp_num_threads = true;
  EXPECT_EQ(environment(0)["OMP_NUM_THREADS"], "1");
}

TEST_F(AgentWorkerEnvironment, AChosenThreadCountOverridesTheVariable) {
  config.environment = {"OMP_NUM_THREADS=8"};
  config.workers.omp_threads = 3;
  EXPECT_EQ(environment(0)["OMP_NUM_THREADS"], "3");
}

TEST_F(AgentWorkerEnvironment, HidesTheAgentsCredentials) {
  config.environment = {"CPPRUN_ADMIN_TOKEN=secret", "CPPRUN_ETCD_PASSWORD=secret",
                        "CPPRUN_NOTIFY_URL=secret", "HOME=/me"};
  for (const auto& [name, value] : environment(0)) EXPECT_NE(value, "secret") << name;
  EXPECT_EQ(environment(0)["HOME"], "/me");
}

TEST_F(AgentWorkerEnvironment, NamesTheTimerFileIfThereIsOne) {
  EXPECT_FALSE(environment(0).contains("TORCHELASTIC_TIMER_FILE"));
  config.timer_file = "/tmp/timers";
  EXPECT_EQ(environment(0)["TORCHELASTIC_TIMER_FILE"], "/tmp/timers");
}

TEST_F(AgentWorkerEnvironment, HangsCountAsRestartsForWorkers) {
  assignment.hang_restarts = 5;
  EXPECT_EQ(environment(0)["TORCHELASTIC_RESTART_COUNT"], "7");
}

TEST_F(AgentWorkerEnvironment, PlannedFaultsExtendTheUsersOwn) {
  config.environment = {"CPPRUN_FAULTS=kill:rank=5,step=3"};
  EXPECT_EQ(environment(0)["CPPRUN_FAULTS"], "kill:rank=5,step=3") << "without a plan";
  const auto plan = faults::parse_plan(
      R"({"plan": [{"do": "exit", "at": {"rank": 1, "step": 7}, "code": 13},
                   {"do": "slow", "at": {"phase": "saving"}, "for_s": 0.25},
                   {"do": "kill-agent", "at": {"node": 0, "after_s": 5}}]})",
      "p.json");
  ASSERT_TRUE(plan.ok()) << plan.error().text;
  config.faults.plan = *plan;
  const std::string ours = "exit:fault=0,rank=1,step=7,code=13;slow:fault=1,phase=saving,ms=250";
  EXPECT_EQ(environment(0)["CPPRUN_FAULTS"], "kill:rank=5,step=3;" + ours + ";report");
  config.environment = {"CPPRUN_FAULTS=/plans/p.json"};  // for the launcher only
  EXPECT_EQ(environment(0)["CPPRUN_FAULTS"], ours + ";report");
}

TEST_F(AgentWorkerEnvironment, TunesMallocByDefault) {
  EXPECT_FALSE(environment(0).contains("MALLOC_TOP_PAD_"));
  config.workers.tunes_malloc = true;
  config.environment = {"MALLOC_TRIM_THRESHOLD_=5"};
  auto variables = environment(0);
  EXPECT_EQ(variables["MALLOC_MMAP_THRESHOLD_"], "1073741824");
  EXPECT_EQ(variables["MALLOC_TRIM_THRESHOLD_"], "5");
  EXPECT_EQ(variables["MALLOC_TOP_PAD_"], "67108864");
}

TEST_F(AgentWorkerEnvironment, NamesTheSnapshotOfTheRound) {
  config.environment = {"CPPRUN_RESUME_FROM=/inherited", "CPPRUN_SNAPSHOT_DIR=/inherited"};
  assignment.resume = control::ResumePoint{{20, "an id"}, "10.0.0.3", 4711};
  EXPECT_EQ(environment(0)["CPPRUN_RESUME_FROM"], "/inherited") << "without the flag";
  config.snapshot_dir = "/data/snapshots";
  EXPECT_EQ(environment(0)["CPPRUN_RESUME_FROM"], "/data/snapshots/step-20");
  EXPECT_EQ(environment(0)["CPPRUN_SNAPSHOT_DIR"], "/data/snapshots");
  assignment.resume.reset();
  EXPECT_FALSE(environment(0).contains("CPPRUN_RESUME_FROM")) << "from the beginning";
}

TEST_F(AgentWorkerEnvironment, NamesTheAgentsStoreAsPythonDoes) {
  assignment.is_agent_store = true;
  EXPECT_EQ(environment(0)["TORCHELASTIC_USE_AGENT_STORE"], "True");
}

TEST_F(AgentWorkerEnvironment, VirtualLocalRanks) {
  config.workers.is_virtual_local_rank = true;
  EXPECT_EQ(environment(1)["LOCAL_RANK"], "0");
  EXPECT_EQ(environment(1)["RANK"], "5");
  EXPECT_EQ(environment(1)["CUDA_VISIBLE_DEVICES"], "1");
  config.environment = {"CUDA_VISIBLE_DEVICES=GPU-a,GPU-b,GPU-c"};
  EXPECT_EQ(environment(1)["CUDA_VISIBLE_DEVICES"], "GPU-b");
  config.environment = {"CUDA_VISIBLE_DEVICES=GPU-a, 3 ,MIG-b"};
  EXPECT_EQ(environment(1)["CUDA_VISIBLE_DEVICES"], "3");
}

TEST_F(AgentWorkerEnvironment, Arguments) {
  config.workers.arguments = {"--out=${local_rank}.txt", "$$HOME", "--x", ""};
  EXPECT_EQ(
      worker_argv(config.workers, 1),
      (std::vector<std::string>{"python3", "-u", "train.py", "--out=1.txt", "$HOME", "--x", ""}));
  config.workers.pass_local_rank = PassLocalRank::Dash;
  EXPECT_EQ(worker_argv(config.workers, 1)[3], "--local-rank=1");
  config.workers.pass_local_rank = PassLocalRank::Underscore;
  EXPECT_EQ(worker_argv(config.workers, 0)[3], "--local_rank=0");
}

TEST_F(AgentWorkerEnvironment, KeepsTheProgramAndExpandsMacrosOfTheScript) {
  config.workers.program = {"/opt/${local_rank}/python3", "-u", "s${local_rank}$$.py"};
  EXPECT_EQ(worker_argv(config.workers, 1),
            (std::vector<std::string>{"/opt/${local_rank}/python3", "-u", "s1$.py"}));
}

TEST_F(AgentWorkerEnvironment, WhatAllWorkersHaveInCommon) {
  config.environment = {"PATH=/bin", "RANK=77", "LOCAL_RANK=0", "CUDA_VISIBLE_DEVICES=0,1", "X=1"};
  config.workers.set_omp_num_threads = true;
  using Entries = std::vector<std::string>;
  EXPECT_EQ(common_environment(config, "outer.token"),
            (Entries{"PATH=/bin", "CUDA_VISIBLE_DEVICES=0,1", "X=1", "CPPRUN_TOKEN=outer.token",
                     "TORCH_NCCL_ASYNC_ERROR_HANDLING=1", "OMP_NUM_THREADS=1"}));
  config.workers.is_virtual_local_rank = true;  // each worker has its own device
  for (const std::string& entry : common_environment(config, "token")) {
    EXPECT_FALSE(entry.starts_with("CUDA_VISIBLE_DEVICES=")) << entry;
  }
}

// What a worker that stays takes over is what differs between the environments of two rounds.
TEST_F(AgentWorkerEnvironment, RoundVariablesTurnOneRoundsEnvironmentIntoTheNexts) {
  config.snapshot_dir = "/snapshots";
  config.workers.set_omp_num_threads = true;
  assignment.resume = control::ResumePoint{{20, "id"}, "", 0};
  std::map<std::string, std::string> kept = environment(1);
  assignment.resume.reset();
  assignment.round = RoundNumber(6);
  assignment.base_rank = 2;
  assignment.world_size = 4;
  assignment.master_port = 40002;
  assignment.restart_count = 3;
  place.error_file = "/logs/attempt_3/error.json";
  for (const std::string& entry : round_variables(config, assignment, place, 1)) {
    const size_t at = entry.find('=');
    if (at == std::string::npos) {
      kept.erase(entry);
    } else {
      kept[entry.substr(0, at)] = entry.substr(at + 1);
    }
  }
  EXPECT_EQ(kept, environment(1));
}

TEST_F(AgentWorkerEnvironment, LinePrefix) {
  EXPECT_EQ(line_prefix(config, assignment, place, 1), "[trainer1]:");
  config.logs.prefix_template = "${hostname}/${rank}/${local_rank}/${role_name} ${other}> ";
  EXPECT_EQ(line_prefix(config, assignment, place, 1), "node1/5/1/trainer ${other}> ");
  config.logs.prefix_template = "";
  EXPECT_EQ(line_prefix(config, assignment, place, 1), "");
}

}  // namespace
}  // namespace cpprun::agent
