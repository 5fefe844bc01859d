// The result of arguments, URL and environment together, and the options rejected before any
// connection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpprun/dist/backend/backend_map.hpp"
#include "cpprun/dist/backend/nccl_plugin.hpp"
#include "cpprun/dist/init/init_plan.hpp"

namespace cpprun::dist {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Variables launched() {
  return {
      {"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};
}

InitPlan plan(const InitOptions& options, const Variables& variables = launched()) {
  return make_init_plan(options, [&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

template <class Error = DistArgumentError>
std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::string refused(const InitOptions& options, const Variables& variables = launched()) {
  return refusal([&] { plan(options, variables); });
}

InitOptions method(const std::string& url) {
  InitOptions options;
  options.init_method = url;
  return options;
}

TEST(InitOptions, DefaultsMatchPython) {
  const InitOptions options;
  EXPECT_EQ(options.world_size, -1);
  EXPECT_EQ(options.rank, -1);
  EXPECT_FALSE(options.timeout.has_value());
  EXPECT_EQ(default_timeout("gloo"), std::chrono::minutes(30));
  EXPECT_EQ(default_timeout("nccl"), std::chrono::minutes(10));
  EXPECT_EQ(default_timeout("cpu:gloo,cuda:nccl"), std::chrono::minutes(30));
}

TEST(InitOptions, EnvironmentIsTheDefaultMethod) {
  const InitPlan made = plan({});
  EXPECT_EQ(made.rank, 1);
  EXPECT_EQ(made.world_size, 4);
  EXPECT_EQ(made.host, "10.0.0.1");
  EXPECT_EQ(made.port, 29500);
  EXPECT_FALSE(made.is_hosted_elsewhere);
}

TEST(InitOptions, NamesAMissingVariable) {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    Variables some = launched();
    some.erase(name);
    const std::string text = refused({}, some);
    EXPECT_THAT(text, HasSubstr(std::string("needs the variable ") + name + ","));
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

TEST(InitOptions, StoreAndMethodExcludeEachOther) {
  InitOptions options = method("env://");
  options.store = make_hash_store();
  options.rank = 0;
  options.world_size = 1;
  EXPECT_THAT(refused(options), HasSubstr("both store and init_method"));
}

TEST(InitOptions, StoreNeedsRankAndSize) {
  InitOptions options;
  options.store = make_hash_store();
  EXPECT_THAT(refused(options), HasSubstr("needs rank and world_size"));
}

TEST(InitOptions, TcpTakesHostsAndBrackets) {
  EXPECT_EQ(parse_init_url("tcp://node7:23456").host, "node7");
  EXPECT_EQ(parse_init_url("tcp://[fe80::1]:23456?rank=2").host, "fe80::1");
  EXPECT_EQ(parse_init_url("tcp://[::1]:23456").port, 23456);
}

TEST(InitOptions, ExplainsInvalidUrls) {
  EXPECT_THAT(refused(method("tcp://node7")), HasSubstr("port is missing"));
  EXPECT_THAT(refused(method("tcp://::1:80")), HasSubstr("tcp://[::1]:port"));
  EXPECT_THAT(refused(method("tcp://:80")), HasSubstr("host is missing"));
  EXPECT_THAT(refused(method("tcp://a:0")), HasSubstr("'0' is no port"));
  EXPECT_THAT(refused(method("tcp://a:1?world=2")), HasSubstr("'world' is not known"));
  EXPECT_THAT(refused(method("file://meet")), HasSubstr("must begin with '/'"));
  EXPECT_THAT(refused(method("mpi://")), HasSubstr("'mpi' is not known"));
  EXPECT_THAT(refused(method("node7:80")), HasSubstr("env://, tcp://host:port or file:///path"));
}

TEST(InitOptions, RankMustBeBelowWorldSize) {
  InitOptions options;
  options.rank = 4;
  EXPECT_THAT(refused(options), HasSubstr("from 0 to 3"));
  options.rank = 0;
  options.world_size = 0;
  EXPECT_THAT(refused(options), HasSubstr("at least 1"));
}

TEST(InitOptions, FileKeysBelongToOneStartOfTheJob) {
  Variables more = launched();
  EXPECT_EQ(plan(method("file:///shared/f"), more).attempt, "");
  more["TORCHELASTIC_RUN_ID"] = "job7";
  more["TORCHELASTIC_RESTART_COUNT"] = "2";
  more["CPPRUN_ROUND"] = "5";
  EXPECT_EQ(plan(method("file:///shared/f"), more).attempt, "job7/2/5");
}

TEST(InitOptions, UsesTheAgentsStore) {
  Variables more = launched();
  more["CPPRUN_STORE"] = "10.0.0.9:4000";
  EXPECT_EQ(plan({}, more).port, 29500) << "Python's ranks are there";
  EXPECT_EQ(plan(method("env://?store=agent"), more).port, 4000);
  EXPECT_TRUE(plan(method("env://?store=agent"), more).is_hosted_elsewhere);
  more["CPPRUN_SDK_STORE"] = "agent";
  EXPECT_EQ(plan({}, more).host, "10.0.0.9");
  EXPECT_EQ(plan(method("env://?store=master"), more).host, "10.0.0.1");
  EXPECT_THAT(refused(method("env://?store=other"), more), HasSubstr("'agent'"));
}

TEST(InitOptions, TheAgentCanServeMasterPort) {
  Variables more = launched();
  more["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_TRUE(plan({}, more).is_hosted_elsewhere);
  EXPECT_TRUE(plan(method("tcp://10.0.0.1:29500"), more).is_hosted_elsewhere);
  EXPECT_FALSE(plan(method("tcp://10.0.0.1:29501"), more).is_hosted_elsewhere);
}

TEST(InitOptions, Backends) {
  using c10::DeviceType;
  EXPECT_EQ(parse_backend("GLOO").size(), 2U) << "as in Python, for cpu and cuda";
  EXPECT_EQ(parse_backend("nccl").front().first, DeviceType::CUDA);
  EXPECT_EQ(parse_backend("cpu:gloo,cuda:nccl").size(), 2U);
  EXPECT_THAT(refusal([] { parse_backend("mpi"); }), HasSubstr("backend 'mpi'"));
  EXPECT_THAT(refusal([] { parse_backend("cpu:nccl"); }), HasSubstr("cuda only"));
  EXPECT_THAT(refusal([] { parse_backend("cpu:gloo,cpu:gloo"); }), HasSubstr("twice"));
  EXPECT_EQ(automatic_backend(false), "gloo");
}

TEST(InitOptions, NcclWithoutGpuIsAnError) {
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  InitOptions options;
  options.backend = "nccl";
  options.store = make_hash_store();
  options.rank = 0;
  options.world_size = 1;
  const std::string text =
      refusal<DistUnsupportedError>([&] { const auto group = init_process_group(options); });
  EXPECT_THAT(text, HasSubstr("nccl needs a GPU"));
  EXPECT_THAT(text, HasSubstr("use backend gloo"));
}

TEST(InitPrecedence, ArgumentsBeatUrlBeatsEnvironment) {
  InitOptions options = method("env://");
  EXPECT_EQ(plan(options).rank, 1);
  EXPECT_EQ(plan(options).world_size, 4);
  options.init_method = "env://?rank=2&world_size=8";
  EXPECT_EQ(plan(options).rank, 2);
  EXPECT_EQ(plan(options).world_size, 8);
  options.rank = 3;
  options.world_size = 16;
  EXPECT_EQ(plan(options).rank, 3);
  EXPECT_EQ(plan(options).world_size, 16);
}

TEST(InitPrecedence, EachArgumentCountsAlone) {
  InitOptions options = method("tcp://10.0.0.2:80?world_size=8");
  options.rank = 7;
  const InitPlan made = plan(options);
  EXPECT_EQ(made.rank, 7);
  EXPECT_EQ(made.world_size, 8);
  EXPECT_EQ(made.host, "10.0.0.2");
  EXPECT_EQ(plan(method("tcp://10.0.0.2:80")).rank, 1) << "the environment fills the rest";
}

TEST(InitPrecedence, ArgumentsNeedNoEnvironment) {
  InitOptions options = method("tcp://10.0.0.2:80");
  options.rank = 0;
  options.world_size = 2;
  EXPECT_EQ(plan(options, {}).world_size, 2);
}

}  // namespace
}  // namespace cpprun::dist
