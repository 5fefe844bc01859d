// Every invalid value: exit code, and a text of one or two lines that names the value and the cure.
#include <algorithm>

#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::test {
namespace {

struct BadCase {
  Strings args;  // before train.py
  std::string names;
  std::string cures;
  Strings variables = {};
};

void expect_bad(const BadCase& c) {
  Error error = error_of(line(c.args), Machine{}.with(c.variables));
  const std::string& shown = error.text;
  EXPECT_EQ(exit_code(error), 1) << shown;
  EXPECT_TRUE(holds(shown, c.names)) << c.names << " is not in: " << shown;
  EXPECT_TRUE(holds(shown, c.cures)) << c.cures << " is not in: " << shown;
  EXPECT_LE(std::count(shown.begin(), shown.end(), '\n'), 1) << shown;
}

TEST(OptionsBadValues, Sizes) {
  for (const BadCase& c : std::vector<BadCase>{
           {{"--nnodes=1:2:3"}, "--nnodes=1:2:3 has 3 parts", "--nnodes=1:4"},
           {{"--nnodes=0"}, "--nnodes=0", "at least one node"},
           {{"--nnodes=3:2"}, "--nnodes=3:2", "minimum is above"},
           {{"--nnodes=two"}, "--nnodes=two", "write N or MIN:MAX"},
           {{"--nnodes="}, "--nnodes=", "write N or MIN:MAX"},
           {{"--nnodes=1:"}, "--nnodes=1:", "write N or MIN:MAX"},
           {{"--nnodes=-1"}, "--nnodes=-1", "at least one"},
           {{"--nnodes=1000000"}, "1000000", "at most 100000"},
           {{"--nproc_per_node=many"}, "--nproc_per_node=many", "use a number, cpu, gpu or auto"},
           {{"--nproc-per-node=1.5"}, "1.5", "use a number"},
           {{"--nproc-per-node=0"}, "--nproc-per-node=0", "from 1 to 4096"},
           {{"--nproc=-2"}, "--nproc=-2", "from 1 to 4096"},
           {{"--nproc=5000"}, "5000", "from 1 to 4096"},
           {{}, "PET_NPROC_PER_NODE=many", "use a number", {"PET_NPROC_PER_NODE=many"}},
           {{"--nproc=xpu"}, "cannot count XPUs", "torch.xpu.device_count()"},
           {{"--role=" + std::string(2000, 'x')}, "--role", "1024"},
           {{"--numa-binding=node"}, "--numa-binding=node", "no NVIDIA driver"},
           {{"--virtual-local-rank", "--nproc=2"},
            "CUDA_VISIBLE_DEVICES=4",
            "1 entry for 2 workers",
            {"CUDA_VISIBLE_DEVICES=4"}},
           {{}, "PET_WORKER_STORE=x", "rank0 or agent", {"PET_WORKER_STORE=x"}},
       }) {
    expect_bad(c);
  }
}

TEST(OptionsBadValues, Rendezvous) {
  for (const BadCase& c : std::vector<BadCase>{
           {{"--rdzv-backend=carrier-pigeon", "--rdzv-endpoint=localhost:0"},
            "carrier-pigeon",
            "static, c10d, cpprun"},
           {{"--rdzv-backend="}, "--rdzv-backend=", "accepted are"},
           {{"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:99999"},
            "localhost:99999",
            "0 to 65535"},
           {{"--rdzv-backend=c10d", "--rdzv-endpoint=http://n:1"}, "http://n:1", "host:port"},
           {{"--rdzv-backend=c10d", "--rdzv-endpoint=n/x:1"}, "n/x:1", "host:port"},
           {{"--rdzv-backend=c10d", "--nnodes=2", "--rdzv-endpoint=n:0"}, "n:0", "give a port"},
           {{"--rdzv-endpoint=n"}, "--rdzv-endpoint=n", "port is missing"},
           {{"--rdzv-id=a/b"}, "--rdzv-id=a/b", "'/'"},
           {{"--rdzv-id="}, "--rdzv-id", "give the job a name"},
           {{"--master-port=65536"}, "--master-port=65536", "0 to 65535"},
           {{"--master-port=-1"}, "--master-port=-1", "0 to 65535"},
           {{"--master-port=1", "--master-addr=a b"}, "--master-addr=a b", "--master-port=PORT"},
           {{"--master-port=1", "--master-addr=host:5"},
            "--master-addr=host:5",
            "--master-port=PORT"},
           {{"--nnodes=2", "--master-port=0"}, "port 0", "same port"},
           {{"--nnodes=2", "--node-rank=2"}, "--node-rank=2", "0 to 1"},
           {{"--master-port=1", "--node-rank=1"}, "--node-rank=1", "0 to 0"},
           {{"--nnodes=2", "--node-rank=-1"}, "--node-rank=-1", "0 to 1"},
           {{"--rdzv-backend=c10d", "--node-rank=-1"}, "--node-rank=-1", "from 0 on"},
           {{"--local-addr=http://x"}, "http://x", "host name"},
           {{"--store-allow=members"}, "--store-allow=members", "--worker-store=agent"},
           {{"--nnodes=2", "--worker-store=rank0"}, "--worker-store=rank0", "--rdzv-backend=c10d"},
       }) {
    expect_bad(c);
  }
}

TEST(OptionsBadValues, BehaviourAndOutput) {
  for (const BadCase& c : std::vector<BadCase>{
           {{"--max-restarts=-1"}, "--max-restarts=-1", "0 for no restart"},
           {{"--max-restarts=99999999999"}, "99999999999", "0 for no restart"},
           {{"--max-hangs=-1"}, "--max-hangs=-1", "0 for none"},
           {{"--max-node-losses=99999999999"}, "99999999999", "0 for none"},
           {{"--restart-backoff=-1"}, "--restart-backoff", "0 or more"},
           {{"--restart-backoff=301"}, "--restart-backoff", "300 s at most"},
           {{"--monitor-interval=0"}, "--monitor-interval", "above 0"},
           {{"--monitor-interval=-1"}, "--monitor-interval", "above 0"},
           {{"--shutdown-timeout=-1"}, "--shutdown-timeout=-1", "0 or more"},
           {{"--regroup-timeout=-1"}, "--regroup-timeout=-1", "0 or more"},
           {{},
            "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=soon",
            "whole number",
            {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT=soon"}},
           {{"--redirects=7"}, "--redirects=7", "0:3,1:1"},
           {{"-r7"}, "-r 7", "0:3,1:1"},
           {{"--redirects="}, "--redirects=", "write 0"},
           {{"--tee=0:x"}, "--tee=0:x", "0:3,1:1"},
           {{"--tee=0:1,"}, "--tee=0:1,", "0:3,1:1"},
           {{"--tee=-1:1"}, "--tee=-1:1", "0:3,1:1"},
           {{"--local-ranks-filter=a,b"}, "'a' is no local rank", "0,2"},
           {{"--local-ranks-filter=0,"}, "--local-ranks-filter=0,", "0,2"},
           {{"--logs-specs=nobody"}, "--logs-specs=nobody", "--log-dir"},
           {{"--report="}, "--report names no file", "write --report=FILE"},
           {{"--report=a.html", "--log-dir=/dev/null"}, "--report=a.html", "leave --log-dir out"},
           {{"--event-log-handler=kafka"}, "kafka", "null or console"},
           {{"--snapshot-dir=/bin/sh"}, "--snapshot-dir=/bin/sh", "is no folder"},
           {{"--snapshot-replicas=1"}, "--snapshot-replicas=1", "needs --snapshot-dir"},
           {{"--snapshot-replicas=2", "--snapshot-dir=x"}, "--snapshot-replicas=2", "write 1"},
           {{"--no-python", "-m"}, "--no-python", "leave one out"},
           {{}, "--no-python", "leave one out", {"PET_NO_PYTHON=1", "PET_MODULE=1"}},
       }) {
    expect_bad(c);
  }
}

TEST(OptionsBadValues, FaultPlans) {
  for (const BadCase& c : std::vector<BadCase>{
           {{"--faults=none.json"}, "'none.json' can't be read", "docs/reference/faults.md"},
           {{"--seed=7"}, "--seed goes with a fault plan", "name one with --faults"},
           {{"--junit=x"}, "--junit goes with a fault plan", "name one with --faults"},
           {{"--faults=plan.json", "--seed=-1"}, "--seed=-1", "a number from 0"},
       }) {
    expect_bad(c);
  }
}

TEST(OptionsBadValues, GpuWithoutGpuIsExplainedInTwoLines) {
  Machine machine;
  machine.cpus = 8;
  EXPECT_EQ(
      error_of({"--standalone", "--nproc_per_node=gpu", "train.py"}, machine).text,
      "no GPU found (no NVIDIA driver on this machine), so --nproc_per_node=gpu has nothing to "
      "count\nhint: use a number (--nproc_per_node=2) or --nproc_per_node=cpu (8 workers here)");
}

TEST(OptionsBadValues, NumaBindingNeedsAGpuForEachWorker) {
  Machine machine;
  machine.gpus = {2, ""};
  machine.topology.cpus = {{0, {0, 0, 0, 0}}, {1, {0, 0, 1, 0}}, {2, {1, 1, 2, 2}}};
  machine.topology.gpu_nodes = {1, 0};
  const Strings two = {"--numa-binding=socket", "--nproc-per-node=2"};
  EXPECT_EQ(config_of(line(two), machine).workers.cpus,
            (std::vector<std::vector<int>>{{2}, {0, 1}}));
  const Strings three = {"--numa-binding=socket", "--nproc-per-node=3"};
  EXPECT_TRUE(holds(error_of(line(three), machine).text, "worker 2 has no GPU"));
}

TEST(OptionsBadValues, ConsoleOptions) {
  expect_bad({{"-q", "-v"}, "--quiet and --verbose", "leave one out"});
  expect_bad({{"--job-name=a", "--rdzv-id=b"}, "--rdzv-id=b", "leave one out"});
  expect_bad({{"--job-name=a/b"}, "--job-name=a/b", "can't have a '/'"});
}

}  // namespace
}  // namespace cpprun::test
