#include "cpprun/worker/environment.hpp"

#include <gtest/gtest.h>

#include <map>

namespace cpprun::worker {
namespace {

using Variables = std::map<std::string, std::string>;

Result<Environment> parse(const Variables& variables) {
  return parse_environment([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string error_of(const Variables& variables) {
  const Result<Environment> result = parse(variables);
  return result ? "no error" : result.error().text;
}

TEST(WorkerEnvironment, ReadsTheLaunchersVariables) {
  const Result<Environment> read = parse({{"RANK", "5"},
                                          {"WORLD_SIZE", "8"},
                                          {"LOCAL_RANK", "1"},
                                          {"LOCAL_WORLD_SIZE", "4"},
                                          {"GROUP_RANK", "1"},
                                          {"GROUP_WORLD_SIZE", "2"},
                                          {"ROLE_NAME", "trainer"},
                                          {"ROLE_RANK", "2"},
                                          {"ROLE_WORLD_SIZE", "3"},
                                          {"MASTER_ADDR", "10.0.0.1"},
                                          {"MASTER_PORT", "29500"},
                                          {"TORCHELASTIC_RESTART_COUNT", "1"},
                                          {"TORCHELASTIC_MAX_RESTARTS", "3"},
                                          {"TORCHELASTIC_RUN_ID", "job"},
                                          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                          {"TORCHELASTIC_ERROR_FILE", "/log/error.json"},
                                          {"CPPRUN_ROUND", "7"},
                                          {"CPPRUN_STORE", "[::1]:29400"},
                                          {"CPPRUN_AGENT", "cpprun/agent/1"},
                                          {"CPPRUN_RESUME_FROM", "/snapshots/3"},
                                          {"CPPRUN_FAULTS", "kill:rank=1"}});
  ASSERT_TRUE(read.ok()) << read.error().text;
  EXPECT_TRUE(read->is_launched);
  EXPECT_EQ(read->rank, 5);
  EXPECT_EQ(read->world_size, 8);
  EXPECT_EQ(read->local_rank, 1);
  EXPECT_EQ(read->local_world_size, 4);
  EXPECT_EQ(read->group_rank, 1);
  EXPECT_EQ(read->group_world_size, 2);
  EXPECT_EQ(read->role, "trainer");
  EXPECT_EQ(read->role_rank, 2);
  EXPECT_EQ(read->role_world_size, 3);
  EXPECT_EQ(read->master_addr, "10.0.0.1");
  EXPECT_EQ(read->master_port, 29'500);
  EXPECT_EQ(read->restart_count, 1);
  EXPECT_EQ(read->max_restarts, 3);
  EXPECT_EQ(read->run_id, "job");
  EXPECT_TRUE(read->use_agent_store);
  EXPECT_EQ(read->error_file, "/log/error.json");
  EXPECT_EQ(read->round, 7);
  EXPECT_EQ(read->store, "[::1]:29400");
  EXPECT_EQ(read->agent, "cpprun/agent/1");
  EXPECT_EQ(read->resume_from, "/snapshots/3");
  EXPECT_EQ(read->faults, "kill:rank=1");
}

TEST(WorkerEnvironment, WithoutALauncherIsAWorldOfOne) {
  const Result<Environment> read = parse({});
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->is_launched);
  EXPECT_EQ(read->rank, 0);
  EXPECT_EQ(read->world_size, 1);
}

TEST(WorkerEnvironment, WithoutALauncherRoleRanksEqualRanks) {
  const Result<Environment> read = parse({{"RANK", "3"}, {"WORLD_SIZE", "4"}});
  ASSERT_TRUE(read.ok()) << read.error().text;
  EXPECT_EQ(read->role_rank, 3);
  EXPECT_EQ(read->role_world_size, 4);
  EXPECT_EQ(read->local_rank, 0);
  EXPECT_EQ(read->local_world_size, 1);
}

TEST(WorkerEnvironment, NamesAMissingVariableWithTheCure) {
  EXPECT_EQ(error_of({{"WORLD_SIZE", "2"}}),
            "RANK is not set, but WORLD_SIZE is; start the program with cpprun or torchrun, or "
            "give rank and world_size");
  EXPECT_EQ(error_of({{"RANK", "0"}}),
            "WORLD_SIZE is not set, but RANK is; start the program with cpprun or torchrun, or "
            "give rank and world_size");
}

TEST(WorkerEnvironment, NamesInvalidNumbers) {
  const Variables two{{"RANK", "0"}, {"WORLD_SIZE", "2"}};
  const auto with = [&](const char* name, const char* value) {
    Variables changed = two;
    changed[name] = value;
    return error_of(changed);
  };
  EXPECT_EQ(with("RANK", "zero"),
            "RANK is 'zero', but must be a whole number from 0 to 2147483647");
  EXPECT_EQ(with("RANK", ""), "RANK is '', but must be a whole number from 0 to 2147483647");
  EXPECT_EQ(with("RANK", "-1"), "RANK is '-1', but must be a whole number from 0 to 2147483647");
  EXPECT_EQ(with("WORLD_SIZE", "0"),
            "WORLD_SIZE is '0', but must be a whole number from 1 to 2147483647");
  EXPECT_EQ(with("RANK", "2"), "RANK is 2, but must be below WORLD_SIZE, which is 2");
  EXPECT_EQ(with("LOCAL_RANK", "1"),
            "LOCAL_RANK is 1, but must be below LOCAL_WORLD_SIZE, which is 1");
  EXPECT_EQ(with("MASTER_PORT", "65536"),
            "MASTER_PORT is '65536', but must be a whole number from 0 to 65535");
  EXPECT_EQ(with("TORCHELASTIC_RESTART_COUNT", "once"),
            "TORCHELASTIC_RESTART_COUNT is 'once', but must be a whole number from 0 to "
            "2147483647");
}

// torch compares with the text of Python's True.
TEST(WorkerEnvironment, OnlyPythonsTrueMeansTheAgentsStore) {
  for (const char* text : {"true", "1", "", "False"}) {
    const Result<Environment> read = parse({{"TORCHELASTIC_USE_AGENT_STORE", text}});
    ASSERT_TRUE(read.ok());
    EXPECT_FALSE(read->use_agent_store) << text;
  }
}

}  // namespace
}  // namespace cpprun::worker
