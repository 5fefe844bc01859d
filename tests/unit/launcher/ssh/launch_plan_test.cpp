// The command lines of --hosts.
#include "launcher/ssh/plan/launch_plan.hpp"

#include <algorithm>

#include "common/limits/ssh.hpp"
#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::ssh {
namespace {

using test::holds;
using test::Machine;
using test::Strings;

const Surroundings kHere{"/data", "/opt/cpprun",       "login.example.com",
                         "0123",  "made-here-secret!", 12'345};

Result<LaunchPlan> plan_result(Strings args, const Machine& machine = {}) {
  args.push_back("train.py");
  args.push_back("--lr");
  Result<OptionsResult> options = test::ask(args, machine);
  if (!options) return options.error();
  return make_plan(std::get<LaunchOverSsh>(*options), machine.environment(), kHere);
}

LaunchPlan plan_of(Strings args, const Machine& machine = {}) {
  Result<LaunchPlan> plan = plan_result(std::move(args), machine);
  if (plan) return *plan;
  ADD_FAILURE() << plan.error().text;
  return {};
}

std::string error_of(Strings args, const Machine& machine = {}) {
  const Result<LaunchPlan> plan = plan_result(std::move(args), machine);
  return plan ? "accepted" : plan.error().text;
}

Strings arguments(const LaunchPlan& plan, size_t rank) {
  return agent_arguments(plan, plan.hosts[rank], rank, plan.hosts.size(), "a:12345");
}

bool has(const Strings& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

std::string secret_of(const LaunchPlan& plan) {
  const auto bytes = plan.secret->bytes();
  return {bytes.begin(), bytes.end()};
}

TEST(LaunchPlan, ATreeOfConnectionsIsOnRequest) {
  EXPECT_EQ(plan_of({"--hosts=a,b"}).fanout, 0u);
  EXPECT_EQ(plan_of({"--hosts=a,b", "--ssh-tree"}).fanout, limits::kSshTreeFanout);
  const LaunchPlan plan = plan_of({"--hosts=a,b", "--ssh-tree=3"});
  EXPECT_EQ(plan.fanout, 3u);
  EXPECT_TRUE(std::ranges::none_of(arguments(plan, 0),
                                   [](auto& word) { return word.starts_with("--ssh-tree"); }));
  for (const char* value : {"0", "65", "-1", "many"}) {
    const std::string error = error_of({"--hosts=a,b", std::string("--ssh-tree=") + value});
    EXPECT_TRUE(holds(error, "how many hosts one host reaches, 1 to 64")) << error;
  }
}

TEST(LaunchPlan, AgentsGetOrdinaryFlags) {
  const LaunchPlan plan = plan_of({"--hosts=a:8,b", "--max_restarts=3"});
  EXPECT_EQ(arguments(plan, 0),
            (Strings{"--stdin-control", "--max-restarts=3", "--cluster=none", "--rdzv-backend=c10d",
                     "--rdzv-id=ssh-0123", "--nnodes=2", "--node-rank=0", "--rdzv-endpoint=a:12345",
                     "--rdzv-conf=is_host=1", "--nproc-per-node=8", "--", "train.py", "--lr"}));
  const Strings second = arguments(plan, 1);
  EXPECT_TRUE(has(second, "--node-rank=1") && has(second, "--rdzv-conf=is_host=0"));
  EXPECT_TRUE(std::ranges::none_of(second, [](auto& w) { return w.starts_with("--nproc"); }));
}

TEST(LaunchPlan, AgentsAcceptTheirFlags) {
  const LaunchPlan plan =
      plan_of({"--hosts=a:8,b:2", "--pass-local-rank", "--run-path", "-r", "3"});
  for (size_t rank : {0u, 1u}) {
    const Launch launch = test::launch_of(arguments(plan, rank));
    EXPECT_EQ(launch.config.rendezvous.node_rank, static_cast<int>(rank));
    EXPECT_EQ(launch.config.rendezvous.max_nodes, 2);
    EXPECT_EQ(launch.config.rendezvous.conf.is_host, rank == 0);
    EXPECT_TRUE(launch.config.shares_console);
    EXPECT_TRUE(launch.warnings.empty());
  }
}

TEST(LaunchPlan, TheUsersFlagsHavePrecedence) {
  const LaunchPlan plan =
      plan_of({"--hosts=a:8,b", "--nproc-per-node=gpu", "--nnodes=1:4", "--rdzv-id=mine",
               "--rdzv-endpoint=c:1", "--rdzv-conf=join_timeout=9", "--cluster=slurm"});
  const Strings words = arguments(plan, 1);
  for (const char* word : {"--nproc-per-node=gpu", "--nnodes=1:4", "--rdzv-id=mine",
                           "--rdzv-conf=join_timeout=9", "--cluster=slurm"}) {
    EXPECT_TRUE(has(words, word)) << word;
  }
  EXPECT_TRUE(has(arguments(plan, 0), "--nproc-per-node=8"));
  EXPECT_EQ(plan.min_nodes, 1);
  EXPECT_EQ(endpoint_at(plan, plan.hosts[0], "x"), "c:1");
}

TEST(LaunchPlan, VariablesOfThisProcessBecomeFlags) {
  const Machine machine = Machine().with({"PET_MAX_RESTARTS=2", "PET_RUN_PATH=0"});
  const Strings words = arguments(plan_of({"--hosts=a"}, machine), 0);
  EXPECT_TRUE(has(words, "--max-restarts=2") && !has(words, "--run-path"));
}

TEST(LaunchPlan, StaticJobsMeetAtTheFirstHostToo) {
  const Strings words = arguments(plan_of({"--hosts=a,b", "--rdzv-backend=static"}), 1);
  EXPECT_TRUE(has(words, "--rdzv-endpoint=a:12345") && has(words, "--node-rank=1"));
  EXPECT_TRUE(std::ranges::none_of(words, [](auto& w) { return holds(w, "is_host"); }));
}

TEST(LaunchPlan, SshGetsOneQuotedCommand) {
  const LaunchPlan plan =
      plan_of({"--hosts=me@a", "--ssh=/bin/ssh  -F my.conf", "--remote-cpprun=/my bin/cpprun"});
  const Strings words = *ssh_command(plan, plan.hosts[0], {"-m", "it's"});
  EXPECT_EQ((Strings{words.begin(), words.begin() + 3}), (Strings{"/bin/ssh", "-F", "my.conf"}));
  EXPECT_TRUE(has(words, "BatchMode=yes") && has(words, "ConnectTimeout=10"));
  EXPECT_EQ((Strings{words.end() - 3, words.end()}),
            (Strings{"--", "me@a", "cd /data || exit 124; exec '/my bin/cpprun' -m 'it'\\''s'"}));
  const Strings many = {std::string(limits::kRemoteCommandBytes, 'x')};
  EXPECT_TRUE(holds(ssh_command(plan, plan.hosts[0], many).error().text, "put arguments into"));
}

TEST(LaunchPlan, TheEndpointIsTheFirstHostAsSshKnowsIt) {
  const LaunchPlan plan = plan_of({"--hosts=me@a,localhost"});
  EXPECT_EQ(endpoint_at(plan, plan.hosts[0], "10.0.0.1"), "10.0.0.1:12345");
  EXPECT_EQ(endpoint_at(plan, plan.hosts[0], ""), "a:12345");
  EXPECT_EQ(endpoint_at(plan, plan.hosts[1], ""), "login.example.com:12345");
  EXPECT_EQ(host_name_of_config("user me\nhostname 10.0.0.1\nport 22\n"), "10.0.0.1");
  EXPECT_EQ(host_name_of_config("hostname -x\n"), "");
  EXPECT_EQ(host_name_of_config("usage: ssh"), "");
}

TEST(LaunchPlan, KnowsThisMachineByItsNames) {
  const LaunchPlan plan = plan_of({"--hosts=a"});
  for (const char* name : {"localhost", "127.0.0.1", "login", "login.example.com"})
    EXPECT_TRUE(is_local(plan, {name, {}})) << name;
  for (const char* name : {"login2", "login.other.com", "me@login", "10.0.0.1"})
    EXPECT_FALSE(is_local(plan, {name, {}})) << name;
  EXPECT_TRUE(holds(error_of({"--hosts=login,localhost"}), "are both this machine"));
}

TEST(LaunchPlan, ASecretIsMadeUnlessTheUserHasOne) {
  EXPECT_EQ(secret_of(plan_of({"--hosts=a"})), "made-here-secret!");
  const LaunchPlan given = plan_of({"--hosts=a", "--secret-file=secret"});
  EXPECT_EQ(secret_of(given), "0123456789abcdef");
  EXPECT_TRUE(
      std::ranges::none_of(arguments(given, 0), [](auto& w) { return holds(w, "secret"); }));
  EXPECT_TRUE(holds(error_of({"--hosts=a", "--secret-file=short"}), "15 bytes"));
  EXPECT_EQ(plan_of({"--hosts=a", "--tls-cert=own.pem"}).secret, nullptr);
}

TEST(LaunchPlan, VariablesAreChosenByName) {
  const Machine machine = Machine().with({"HERE=a=b"});
  EXPECT_EQ(plan_of({"--hosts=a", "-x", "HERE", "-xNEW=1", "--export=EMPTY="}, machine).variables,
            (Strings{"HERE=a=b", "NEW=1", "EMPTY="}));
  EXPECT_TRUE(holds(error_of({"--hosts=a", "-x", "GONE"}), "GONE is not set here"));
  EXPECT_TRUE(holds(error_of({"--hosts=a", "-x", "1A=2"}), "write the name of a variable"));
  EXPECT_TRUE(holds(error_of({"--hosts=a", "-xCPPRUN_SECRET=x"}), "reaches the hosts without -x"));
  const std::string large(limits::kControlLineBytes / 2, 'x');
  EXPECT_TRUE(holds(error_of({"--hosts=a", "-xA=" + large}), "put large values into a file"));
}

TEST(LaunchPlan, AnActiveVirtualEnvironmentIsUsedEverywhere) {
  const Machine machine = Machine().with({"VIRTUAL_ENV=/venv"});
  EXPECT_EQ(plan_of({"--hosts=a"}, machine).variables, Strings{"PYTHON_EXEC=/venv/bin/python"});
  EXPECT_EQ(plan_of({"--hosts=a", "-xPYTHON_EXEC=/p"}, machine).variables,
            Strings{"PYTHON_EXEC=/p"});
  EXPECT_EQ(plan_of({"--hosts=a"}, machine.with({"PYTHON_EXEC=/q"})).variables,
            Strings{"PYTHON_EXEC=/q"});
}

TEST(LaunchPlan, ErrorsNameTheRemedy) {
  EXPECT_TRUE(holds(error_of({"--hosts=a,b", "--nnodes=3"}), "--nnodes=3, but the list has 2"));
  EXPECT_TRUE(holds(error_of({"--hosts=a,b", "--nnodes=1"}), "write MIN:MAX with 2 in it"));
  EXPECT_TRUE(holds(error_of({"--hosts=a,b", "--nnodes=2:1"}), "write N or MIN:MAX"));
  EXPECT_TRUE(holds(error_of({"--hosts=a", "--hostfile=b"}), "give one of them"));
  EXPECT_TRUE(holds(error_of({"--hostfile=none"}), "can't be read"));
  EXPECT_TRUE(holds(error_of({"--hosts=a", "--ssh= "}), "--ssh is empty"));
  EXPECT_TRUE(holds(error_of({"--hosts=a", "--stdin-control"}), "leave it out"));
  EXPECT_TRUE(holds(error_of({"--exclude=a"}), "add --hosts=a:8,b:8 or --hostfile=FILE"));
  EXPECT_TRUE(holds(error_of({"--hosts=a", "--rdzv-backend=etcd"}), "of etcd's members"));
  for (const char* option : {"--standalone", "--node-rank=1", "--local-addr=a", "--master-addr=a"})
    EXPECT_TRUE(holds(error_of({"--hosts=a", option}), "does not go together")) << option;
}

TEST(LaunchPlan, ReadsAHostfile) {
  Machine machine;
  machine.texts["hosts.txt"] = "a slots=2\nb\n";
  const LaunchPlan plan = plan_of({"--hostfile", "hosts.txt", "--include=b"}, machine);
  EXPECT_EQ(plan.hosts, (std::vector<Host>{{"b", {}}}));
}

}  // namespace
}  // namespace cpprun::ssh
