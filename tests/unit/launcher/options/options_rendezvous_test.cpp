// The rendezvous of a command line: standalone, implicit standalone, static on one and several
// nodes, c10d.
#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::test {
namespace {

RendezvousConfig rendezvous_of(const Strings& options, const Machine& machine = {}) {
  return config_of(line(options), machine).rendezvous;
}

Strings warnings_of(const Strings& options, const Machine& machine = {}) {
  return launch_of(line(options), machine).warnings;
}

void expect_standalone(const RendezvousConfig& config) {
  EXPECT_TRUE(config.is_standalone);
  EXPECT_EQ(config.backend, Backend::Cpprun);
  EXPECT_EQ(config.endpoint, (Endpoint{"127.0.0.1", 0}));
  EXPECT_EQ(config.run_id, "a-fresh-id");
  EXPECT_EQ(config.max_nodes, 1);
  EXPECT_EQ(config.worker_store, WorkerStore::Rank0);
  EXPECT_FALSE(config.master_addr.has_value());
  EXPECT_FALSE(config.master_port.has_value());
}

TEST(OptionsRendezvous, StandaloneOverridesOtherOptionsSilently) {
  Strings options = {"--standalone", "--rdzv-id=mine", "--rdzv-backend=static",
                     "--rdzv-endpoint=10.255.255.1:1"};
  expect_standalone(rendezvous_of(options));
  EXPECT_TRUE(warnings_of(options).empty());
  expect_standalone(rendezvous_of({"--standalone", "--rdzv-backend=etcd"}));
  const Launch launch = launch_of(line({"--standalone", "--rdzv-id=mine"}));
  ASSERT_EQ(launch.notes.size(), 1u);
  EXPECT_TRUE(holds(launch.notes[0], "--job-name=mine names the job"));
}

TEST(OptionsRendezvous, JobNameNamesTheJob) {
  EXPECT_EQ(rendezvous_of({"--standalone", "--job-name=mine"}).run_id, "mine");
  EXPECT_EQ(rendezvous_of({"--job-name=mine"}).run_id, "mine");
  const RendezvousConfig several =
      rendezvous_of({"--job-name=mine", "--rdzv-backend=c10d", "--nnodes=2"});
  EXPECT_EQ(several.run_id, "mine");
  EXPECT_FALSE(several.has_default_run_id);
}

TEST(OptionsRendezvous, RejectsStandaloneWithSeveralNodes) {
  const std::string why = error_of(line({"--standalone", "--nnodes=2"})).text;
  EXPECT_TRUE(holds(why, "--nnodes=2 wants more")) << why;
  expect_standalone(rendezvous_of({"--standalone", "--nnodes=1:4"}));
}

TEST(OptionsRendezvous, APlainLaunchOnOneNodeIsStandaloneToo) {
  expect_standalone(rendezvous_of({}));
  expect_standalone(rendezvous_of({"--nnodes=1", "--node_rank=0", "--master_addr=10.0.0.1"}));
  EXPECT_EQ(rendezvous_of({"--rdzv-id=x"}).run_id, "x") << "only --standalone ignores it";
  EXPECT_TRUE(warnings_of({"--nnodes=1", "--node_rank=0"}).empty());
  EXPECT_FALSE(rendezvous_of({"--nnodes=2"}).is_standalone);
  EXPECT_FALSE(rendezvous_of({"--rdzv-backend=c10d"}).is_standalone);
  EXPECT_EQ(rendezvous_of({}, Machine{}.with({"PET_MASTER_PORT=29777"})).master_port, 29777);
}

TEST(OptionsRendezvous, StaticNodesWithoutAnAddressMeetOnThisMachineOnly) {
  const Strings warnings = warnings_of({"--nnodes=2"});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0],
            "without --master-addr nodes meet at 127.0.0.1:29500, so only those on this machine");
  EXPECT_TRUE(warnings_of({"--nnodes=2", "--master-addr=n0"}).empty());
  EXPECT_TRUE(warnings_of({"--nnodes=2", "--rdzv-endpoint=n0:1"}).empty());
  EXPECT_TRUE(warnings_of({"--master-port=29777", "--worker-store=agent"}).empty()) << "one node";
}

TEST(OptionsRendezvous, StaticOnOneNodeKeepsItsAddress) {
  RendezvousConfig config = rendezvous_of({"--master_addr=localhost", "--master_port=10086"});
  EXPECT_EQ(config.backend, Backend::Static);
  EXPECT_TRUE(config.is_standalone);
  EXPECT_EQ(config.endpoint, (Endpoint{"127.0.0.1", 0}));
  EXPECT_EQ(config.master_addr, "localhost");
  EXPECT_EQ(config.master_port, 10086);
  EXPECT_EQ(config.run_id, "none");
  EXPECT_EQ(config.node_rank, 0);
  EXPECT_EQ(config.worker_store, WorkerStore::Rank0);
  EXPECT_EQ(rendezvous_of({"--master-port=1"}).master_addr, "127.0.0.1");
}

TEST(OptionsRendezvous, StaticOnOneNodeWithTheAgentsStoreUsesTheMaster) {
  RendezvousConfig config =
      rendezvous_of({"--master-addr=n0", "--master-port=10086", "--worker-store=agent"});
  EXPECT_EQ(config.backend, Backend::Static);
  EXPECT_EQ(config.endpoint, (Endpoint{"n0", 10086}));
  EXPECT_EQ(config.master_addr, "n0");
  EXPECT_TRUE(config.is_store_at_endpoint());
  EXPECT_FALSE(config.is_standalone);
  config = rendezvous_of({"--master-port=0", "--worker-store=agent"});
  EXPECT_EQ(config.endpoint, (Endpoint{"127.0.0.1", 0}));
  EXPECT_FALSE(config.is_store_at_endpoint()) << "a fresh port each round";
  EXPECT_FALSE(rendezvous_of({"--master-port=10086"}).is_store_at_endpoint());
  EXPECT_TRUE(rendezvous_of({"--nnodes=2"}).is_store_at_endpoint());
}

TEST(OptionsRendezvous, AnEndpointWithoutABackendIsStatic) {
  RendezvousConfig config =
      rendezvous_of({"--nnodes=1", "--rdzv-id=101", "--rdzv-endpoint=localhost:2345"});
  EXPECT_EQ(config.backend, Backend::Static);
  EXPECT_EQ(config.master_addr, "localhost");
  EXPECT_EQ(config.master_port, 2345);
  EXPECT_EQ(config.run_id, "101");
}

TEST(OptionsRendezvous, MasterAddrMayBeIpv6AndPortZeroIsAFreePort) {
  for (const char* addr : {"[::1]", "::1"}) {
    RendezvousConfig config =
        rendezvous_of({std::string("--master_addr=") + addr, "--master_port=0"});
    EXPECT_EQ(config.master_addr, "::1");
    EXPECT_FALSE(config.master_port.has_value());
    EXPECT_EQ(config.backend, Backend::Static);
  }
}

TEST(OptionsRendezvous, StaticOverSeveralNodesUsesTheMaster) {
  RendezvousConfig config =
      rendezvous_of({"--nnodes=2", "--node-rank=1", "--master-addr=n0", "--master-port=10086"});
  EXPECT_EQ(config.backend, Backend::Static);
  EXPECT_FALSE(config.is_standalone);
  EXPECT_EQ(config.endpoint, (Endpoint{"n0", 10086}));
  EXPECT_EQ(config.master_addr, "n0");
  EXPECT_EQ(config.node_rank, 1);
  EXPECT_EQ(config.worker_store, WorkerStore::Agent);
  EXPECT_EQ(rendezvous_of({"--nnodes=2"}).endpoint, (Endpoint{"127.0.0.1", 29500}));
}

TEST(OptionsRendezvous, StaticWaitsForAllNodesAndReportsIt) {
  RendezvousConfig config = rendezvous_of({"--nnodes=1:3"});
  EXPECT_EQ(config.min_nodes, 3);
  EXPECT_EQ(config.max_nodes, 3);
  ASSERT_EQ(warnings_of({"--nnodes=1:3", "--master-addr=n0"}).size(), 1u);
  EXPECT_TRUE(holds(warnings_of({"--nnodes=1:3"}).front(), "waits for all 3"));
}

TEST(OptionsRendezvous, C10dHasItsOwnDefaults) {
  for (const char* backend : {"--rdzv-backend=c10d", "--rdzv-backend=cpprun"}) {
    RendezvousConfig config = rendezvous_of({backend});
    EXPECT_EQ(config.backend, Backend::Cpprun);
    EXPECT_EQ(config.endpoint, (Endpoint{"localhost", 29400}));
    EXPECT_EQ(config.run_id, "none");
    EXPECT_EQ(config.worker_store, WorkerStore::Rank0);
    EXPECT_FALSE(config.node_rank.has_value());
    EXPECT_TRUE(warnings_of({backend}).empty());
  }
  RendezvousConfig config =
      rendezvous_of({"--nnodes=1:4", "--rdzv-backend=c10d", "--rdzv-endpoint=n1"});
  EXPECT_EQ(config.endpoint, (Endpoint{"n1", 29400}));
  EXPECT_EQ(config.min_nodes, 1);
  EXPECT_EQ(rendezvous_of({"--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"})
                .endpoint.port,
            0);
}

TEST(OptionsRendezvous, WarnsOfUnusedOptions) {
  Strings warnings = warnings_of({"--rdzv-backend=c10d", "--node-rank=3"});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(holds(warnings[0], "--node-rank=3 is only a wish with --rdzv-backend=c10d"));
  EXPECT_EQ(rendezvous_of({"--rdzv-backend=c10d", "--node-rank=3"}).node_rank, 3);
  warnings = warnings_of({"--rdzv-backend=c10d", "--master-addr=n1"});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(holds(warnings[0], "ignored"));
  warnings = warnings_of({"--rdzv-backend=c10d", "--nnodes=2"});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(holds(warnings[0], "localhost:29400"));
  warnings = warnings_of({"--node-rank=1"});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(holds(warnings[0], "--nnodes=N"));
}

TEST(OptionsRendezvous, WorkerStoreCanBeChosen) {
  EXPECT_EQ(rendezvous_of({"--worker-store=agent"}).worker_store, WorkerStore::Agent);
  EXPECT_EQ(rendezvous_of({"--nnodes=2", "--worker-store=agent"}).worker_store, WorkerStore::Agent);
  EXPECT_EQ(
      rendezvous_of({"--nnodes=2", "--rdzv-backend=c10d", "--worker-store=rank0"}).worker_store,
      WorkerStore::Rank0);
}

TEST(OptionsRendezvous, WarnsOfUncatchableSignals) {
  Launch launch = launch_of(line({"--signals-to-handle=SIGKILL, SIGTERM,SIGNOPE,SIGSTOP,SIGTERM"}));
  EXPECT_EQ(launch.config.signals, std::vector<int>{15});
  ASSERT_EQ(launch.warnings.size(), 3u);
  EXPECT_TRUE(holds(launch.warnings[0], "SIGKILL can't be caught"));
  EXPECT_TRUE(holds(launch.warnings[1], "'SIGNOPE' is no signal"));
  EXPECT_TRUE(launch_of(line({"--signals-to-handle="})).config.signals.empty());
}

}  // namespace
}  // namespace cpprun::test
