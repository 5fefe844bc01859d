// --cluster: recorded environments of Slurm 22.05 and of pods, and what is inferred from them.
#include <csignal>
#include <set>

#include "launcher/options/cluster.hpp"
#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::test {
namespace {

// `srun -N2 --gpus-per-node=2`, the task of n1 or n2.
Machine step_on(int node, const Strings& more = {}) {
  const std::string id = std::to_string(node - 1);
  return Machine{}
      .with({"SLURM_JOB_ID=41", "SLURM_JOBID=41", "SLURM_JOB_NODELIST=n[1-2]",
             "SLURM_JOB_NUM_NODES=2", "SLURM_CPUS_ON_NODE=1", "SLURM_GPUS_ON_NODE=2",
             "SLURM_LOCALID=0", "SLURM_NODEID=" + id, "SLURM_PROCID=" + id, "SLURM_NTASKS=2",
             "SLURM_STEP_ID=0", "SLURM_STEP_NODELIST=n[1-2]", "SLURM_STEP_NUM_NODES=2",
             "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_TASKS_PER_NODE=1(x2)",
             "SLURMD_NODENAME=n" + std::to_string(node)})
      .with(more);
}

// The batch script of `sbatch -N2`.
Machine batch_script(const std::string& nodes = "2") {
  return Machine{}.with({"SLURM_JOB_ID=41", "SLURM_JOB_NUM_NODES=" + nodes,
                         "SLURM_JOB_NODELIST=n[1-2]", "SLURM_NODEID=0", "SLURM_PROCID=0",
                         "SLURM_LOCALID=0", "SLURMD_NODENAME=n1"});
}

// `srun -n4` with 3 tasks on n1.
Machine shared_node(int local_id) {
  Machine machine = step_on(1);
  for (std::string& variable : machine.variables) {
    if (variable.starts_with("SLURM_LOCALID="))
      variable = "SLURM_LOCALID=" + std::to_string(local_id);
    if (variable.starts_with("SLURM_STEP_TASKS_PER_NODE="))
      variable = "SLURM_STEP_TASKS_PER_NODE=3,1";
  }
  return machine;
}

Machine pod(int index) {
  const std::string host = "train-" + std::to_string(index);
  Machine machine = Machine{}.with({"KUBERNETES_SERVICE_HOST=10.96.0.1", "HOSTNAME=" + host,
                                    "JOB_COMPLETION_INDEX=" + std::to_string(index)});
  machine.texts["/etc/hosts"] =
      "127.0.0.1\tlocalhost\n10.1.0.7\t" + host + ".svc.default.svc.cluster.local\t" + host + "\n";
  return machine;
}

TEST(OptionsCluster, AStepNeedsNoFlags) {
  const Launch first = launch_of(line({}), step_on(1));
  const RendezvousConfig& config = first.config.rendezvous;
  EXPECT_EQ(config.backend, Backend::Cpprun);
  EXPECT_EQ(config.min_nodes, 2);
  EXPECT_EQ(config.max_nodes, 2);
  EXPECT_EQ(config.endpoint, (Endpoint{"n1", 10'656}));
  EXPECT_EQ(config.run_id, "41.0.0");
  EXPECT_FALSE(config.has_default_run_id);
  EXPECT_EQ(config.conf.is_host, true);
  EXPECT_EQ(first.config.workers.nproc, 2);
  EXPECT_EQ(first.inferred,
            "Slurm job 41 step 0: 2 nodes, endpoint n1:10656, run id 41.0.0, 2 workers per "
            "node, no secret");
  EXPECT_TRUE(first.warnings.empty());

  const Launch second = launch_of(line({}), step_on(2, {"SLURM_RESTART_COUNT=3"}));
  EXPECT_EQ(second.config.rendezvous.endpoint, config.endpoint);
  EXPECT_EQ(second.config.rendezvous.run_id, "41.0.3");
  EXPECT_EQ(second.config.rendezvous.conf.is_host, false);
  EXPECT_FALSE(second.config.cluster.is_first_node);
}

TEST(OptionsCluster, NoNameIsNeededToHost) {
  Machine machine = step_on(1);
  std::erase(machine.variables, "SLURMD_NODENAME=n1");
  EXPECT_EQ(launch_of(line({}), machine).config.rendezvous.conf.is_host, true);
  machine = step_on(2);
  std::erase(machine.variables, "SLURMD_NODENAME=n2");
  EXPECT_EQ(launch_of(line({}), machine).config.rendezvous.conf.is_host, false);
}

TEST(OptionsCluster, FlagsAndVariablesHavePrecedence) {
  const Launch launch =
      launch_of(line({"--nnodes=1:2", "--rdzv-id=mine", "--nproc-per-node=3"}),
                step_on(1, {"PET_RDZV_ENDPOINT=n2:29400", "PET_RDZV_BACKEND=c10d"}));
  const RendezvousConfig& config = launch.config.rendezvous;
  EXPECT_EQ(config.min_nodes, 1);
  EXPECT_EQ(config.endpoint, (Endpoint{"n2", 29'400}));
  EXPECT_EQ(config.run_id, "mine");
  EXPECT_FALSE(config.conf.is_host.has_value());
  EXPECT_EQ(launch.config.workers.nproc, 3);
  EXPECT_TRUE(launch.inferred.empty()) << launch.inferred;
  EXPECT_EQ(launch_of(line({"--rdzv-conf=is_host=0"}), step_on(1)).config.rendezvous.conf.is_host,
            false);
}

TEST(OptionsCluster, StaticJobsLackOnlyTheRank) {
  const RendezvousConfig config =
      config_of(line({"--master-addr=n1", "--master-port=29500"}), step_on(2)).rendezvous;
  EXPECT_EQ(config.backend, Backend::Static);
  EXPECT_EQ(config.node_rank, 1);
  EXPECT_EQ(config.endpoint, (Endpoint{"n1", 29'500}));
  EXPECT_EQ(config.max_nodes, 2);
}

TEST(OptionsCluster, NoneAndStandaloneAreAsTorchrun) {
  for (const Strings& options : {Strings{"--cluster=none"}, Strings{"--standalone"}}) {
    const Launch launch = launch_of(line(options), step_on(2));
    EXPECT_TRUE(launch.config.rendezvous.is_standalone);
    EXPECT_EQ(launch.config.workers.nproc, 1);
    EXPECT_TRUE(launch.inferred.empty());
  }
  EXPECT_TRUE(launch_of(line({"--nnodes=1"}), step_on(2)).config.rendezvous.is_standalone);
}

TEST(OptionsCluster, OutsideOfAnyClusterNothingIsInferred) {
  const Launch launch = launch_of(line({}));
  EXPECT_TRUE(launch.inferred.empty());
  EXPECT_EQ(launch.config.cluster.kind, ClusterConfig::Kind::None);
  EXPECT_TRUE(holds(error_of(line({"--cluster=slurm"})).text, "SLURM_JOB_ID is not set"));
  EXPECT_EQ(error_of(line({"--cluster=torque"})).kind, ErrorKind::Usage);
  EXPECT_TRUE(holds(error_of(line({}), Machine{}.with({"PET_CLUSTER=torque"})).text,
                    "PET_CLUSTER=torque is no valid value\nhint: write auto"));
}

TEST(OptionsCluster, AForgottenSrunIsReported) {
  const Launch launch = launch_of(line({}), batch_script());
  ASSERT_EQ(launch.warnings.size(), 1u);
  EXPECT_TRUE(holds(launch.warnings[0], "srun did not start this cpprun: it uses one node"));
  EXPECT_TRUE(launch.config.rendezvous.is_standalone);
  EXPECT_EQ(launch_of(line({"--nnodes=1:2"}), batch_script()).warnings.size(), 3u);
  const Error error = error_of(line({"--nnodes=2"}), batch_script());
  EXPECT_TRUE(holds(error.text, "write `srun cpprun ...`")) << error.text;
  EXPECT_EQ(exit_code(error), 1);
  EXPECT_TRUE(launch_of(line({}), batch_script("1")).warnings.empty());
  EXPECT_EQ(launch_of(line({"--nnodes=2", "--cluster=none"}), batch_script()).config.cluster.kind,
            ClusterConfig::Kind::None);
}

TEST(OptionsCluster, ShellsAndForeignStepsAreNoSteps) {
  // `salloc` with use_interactive_step, and a job that a step of n7 submitted.
  for (const Strings& more :
       {Strings{"SLURM_STEP_ID=4294967290", "SLURM_STEP_NODELIST=n1", "SLURM_STEP_NUM_NODES=1"},
        Strings{"SLURM_STEP_ID=0", "SLURM_STEP_NODELIST=n[7-8]", "SLURM_STEP_NUM_NODES=2"}}) {
    const Launch launch = launch_of(line({}), batch_script().with(more));
    ASSERT_EQ(launch.warnings.size(), 1u);
    EXPECT_TRUE(holds(launch.warnings[0], "srun did not start"));
  }
}

TEST(OptionsCluster, OneLauncherPerNodeRunsTheJob) {
  EXPECT_TRUE(launch_of(line({}), shared_node(2)).is_surplus);
  EXPECT_TRUE(launch_of(line({"--nnodes=2"}), shared_node(1)).is_surplus);
  const Launch first = launch_of(line({}), shared_node(0));
  EXPECT_FALSE(first.is_surplus);
  ASSERT_EQ(first.warnings.size(), 1u);
  EXPECT_TRUE(holds(first.warnings[0], "srun started 3 launchers on this node"));
  EXPECT_TRUE(holds(first.warnings[0], "use --ntasks-per-node=1"));
  // Jobs of one node each, and agents that count as nodes, are meant.
  EXPECT_FALSE(launch_of(line({"--nnodes=1"}), shared_node(1)).is_surplus);
  EXPECT_EQ(launch_of(line({"--nnodes=1"}), shared_node(1)).config.workers.nproc, 1);
  EXPECT_FALSE(launch_of(line({"--nnodes=4"}), shared_node(1)).is_surplus);
  EXPECT_FALSE(launch_of(line({"--cluster=none"}), shared_node(1)).is_surplus);
}

TEST(OptionsCluster, AnEndpointOutsideOfTheStepIsReported) {
  const auto warnings = [](const std::string& endpoint) {
    return launch_of(line({"--rdzv-backend=c10d", "--rdzv-endpoint=" + endpoint}), step_on(1))
        .warnings;
  };
  ASSERT_EQ(warnings("login3:29400").size(), 1u);
  EXPECT_TRUE(holds(warnings("login3")[0], "login3 is no node of this step (n1, ...)"));
  for (const char* good :
       {"n1:29400", "n2.example.com:29400", "n1-ib0", "10.0.0.1:29400", "[::1]:5"})
    EXPECT_TRUE(warnings(good).empty()) << good;
}

TEST(OptionsCluster, MalformedVariablesAreAnError) {
  Machine machine = Machine{}.with(
      {"SLURM_JOB_ID=41", "SLURM_STEP_ID=0", "SLURM_STEP_NODELIST=n[1-", "SLURM_NODEID=0"});
  EXPECT_TRUE(holds(error_of(line({}), machine).text, "SLURM_STEP_NODELIST: 'n[1-' is no list"));
  EXPECT_EQ(launch_of(line({"--cluster=none"}), machine).config.rendezvous.is_standalone, true);
  machine = Machine{}.with({"SLURM_JOB_ID=none", "SLURM_STEP_NODELIST=n["});
  EXPECT_EQ(launch_of(line({}), machine).config.cluster.kind, ClusterConfig::Kind::None);
}

TEST(OptionsCluster, NeighbouringStepsGetDifferentPorts) {
  const auto port = [](const std::string& job, const std::string& step) {
    return config_of(line({}), Machine{}.with({"SLURM_JOB_ID=" + job, "SLURM_STEP_ID=" + step,
                                               "SLURM_STEP_NODELIST=n[1-2]", "SLURM_NODEID=0"}))
        .rendezvous.endpoint.port;
  };
  EXPECT_NE(port("41", "0"), port("42", "0"));
  EXPECT_NE(port("41", "0"), port("41", "1"));
  for (const char* job : {"0", "1249", "1250", "67108863", "9223372036854775807"}) {
    EXPECT_GE(port(job, "0"), 10'000);
    EXPECT_LT(port(job, "4294967279"), 30'000);
  }
}

TEST(OptionsCluster, AStepHasEightDifferentPorts) {
  const RendezvousConfig config = config_of(line({}), step_on(1)).rendezvous;
  std::set<uint16_t> ports(config.further_ports.begin(), config.further_ports.end());
  ports.insert(config.endpoint.port);
  EXPECT_EQ(ports.size(), 8U);
  EXPECT_EQ(config_of(line({}), step_on(2)).rendezvous.further_ports, config.further_ports);
  const RendezvousConfig named =
      config_of(line({"--rdzv-backend=c10d", "--rdzv-endpoint=n1:29400"}), step_on(1)).rendezvous;
  EXPECT_TRUE(named.further_ports.empty()) << "the user names one port";
}

TEST(OptionsCluster, AnElasticJobExpectsTheNodesOfItsStep) {
  EXPECT_EQ(config_of(line({"--nnodes=1:4"}), step_on(1)).rendezvous.expected_nodes, 2);
  EXPECT_EQ(config_of(line({"--nnodes=1:4"}), pod(0)).rendezvous.expected_nodes, 0);
}

// Pod 0 may be the replacement of one whose workers elsewhere have a lease yet.
TEST(OptionsCluster, AnElasticJobOfPodsWaitsALeaseBeforeASmallerFirstRound) {
  const auto last_call = [](const Strings& options, const Machine& machine) {
    const RendezvousConf conf = config_of(line(options), machine).rendezvous.conf;
    return conf.last_call.value_or(Duration{-1});
  };
  using std::chrono::seconds;
  for (int index : {0, 1}) {
    EXPECT_EQ(last_call({"--nnodes=1:4"}, pod(index)), seconds(5));
    EXPECT_EQ(last_call({"--nnodes=1:4", "--rdzv-conf=last_call_timeout=1"}, pod(index)),
              seconds(5));
    EXPECT_EQ(last_call({"--nnodes=1:4", "--rdzv-conf=last_call_timeout=60"}, pod(index)),
              seconds(60));
    EXPECT_EQ(last_call({"--nnodes=4"}, pod(index)), Duration{-1});
  }
  EXPECT_EQ(last_call({"--nnodes=1:4"}, step_on(1)), Duration{-1});
}

TEST(OptionsCluster, AStepWithOneLauncherPerNodeKnowsItsNodes) {
  const ClusterConfig cluster = launch_of(line({}), step_on(2)).config.cluster;
  EXPECT_EQ(cluster.step_nodes, (Strings{"n1", "n2"}));
  EXPECT_EQ(cluster.node_name, "n2");
  EXPECT_TRUE(launch_of(line({}), shared_node(0)).config.cluster.step_nodes.empty());
}

TEST(OptionsCluster, AutoCountsTheCpusOfTheJob) {
  Machine machine = step_on(1);
  machine.cpus = 128;
  machine.usable_cpus = 4;
  for (const char* token : {"cpu", "auto"}) {
    const std::string option = std::string("--nproc-per-node=") + token;
    const Launch launch = launch_of(line({option}), machine);
    EXPECT_EQ(launch.config.workers.nproc, 4);
    EXPECT_TRUE(holds(launch.inferred, "4 workers per node (4 of 128 CPUs)")) << launch.inferred;
    EXPECT_EQ(launch_of(line({option, "--cluster=none"}), machine).config.workers.nproc, 128);
  }
  const Launch threads = launch_of(line({"--nproc-per-node=2", "--omp-threads=auto"}), machine);
  EXPECT_EQ(threads.config.workers.omp_threads, 2);
}

TEST(OptionsCluster, ASharedSubmitDirectoryHoldsTheSecretOfAStep) {
  Machine machine = step_on(1, {"SLURM_SUBMIT_DIR=/shared"});
  const auto file = [&](const Strings& options) {
    return config_of(line(options), machine).rendezvous.tls.step_secret_file;
  };
  EXPECT_EQ(file({}), "");
  EXPECT_TRUE(launch_of(line({}), machine).inferred.ends_with(", no secret"));
  EXPECT_EQ(file({"--slurm-secret=always"}), "/shared/.cpprun-secret-41.0.0");
  machine.shared_folder = "/shared";
  EXPECT_EQ(file({}), "/shared/.cpprun-secret-41.0.0");
  EXPECT_EQ(file({"--slurm-secret=never"}), "");
  EXPECT_EQ(file({"--secret-file=secret"}), "") << "the user's own secret";
  EXPECT_EQ(file({"--nnodes=1"}), "") << "a job of one node has no peers";
  EXPECT_TRUE(
      holds(error_of(line({"--slurm-secret=maybe"})).text, "it is one of auto, always, never"));
}

TEST(OptionsCluster, AnIndexedPodKnowsItsJob) {
  const Launch first = launch_of(line({"--nnodes=2:4"}), pod(0));
  EXPECT_EQ(first.config.rendezvous.endpoint,
            (Endpoint{"train-0.svc.default.svc.cluster.local", 29'400}));
  EXPECT_EQ(first.config.rendezvous.conf.is_host, true);
  EXPECT_EQ(first.config.rendezvous.run_id, "train");
  const Launch third = launch_of(line({"--nnodes=2:4"}), pod(2));
  EXPECT_EQ(third.config.rendezvous.endpoint, first.config.rendezvous.endpoint);
  EXPECT_EQ(third.config.rendezvous.conf.is_host, false);
  EXPECT_TRUE(launch_of(line({}), pod(2)).config.rendezvous.is_standalone);
  const RendezvousConfig named =
      config_of(line({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=a:1"}), pod(0))
          .rendezvous;
  EXPECT_EQ(named.endpoint, (Endpoint{"a", 1}));
  EXPECT_FALSE(named.conf.is_host.has_value());
}

TEST(OptionsCluster, TheUidOfTheJobDistinguishesRuns) {
  const Machine machine = pod(1).with({"CPPRUN_JOB_UID=8f14e45f-ceea-467f-a83e-5a3c0f4b6d21"});
  const Launch launch = launch_of(line({"--nnodes=2"}), machine);
  EXPECT_EQ(launch.config.rendezvous.run_id, "train.8f14e45f");
  EXPECT_EQ(launch.config.cluster.job_id, "8f14e45f-ceea-467f-a83e-5a3c0f4b6d21");
  EXPECT_EQ(launch.inferred,
            "Kubernetes job train: endpoint train-0.svc.default.svc.cluster.local:29400, run id "
            "train.8f14e45f");
  EXPECT_TRUE(launch_of(line({}), machine).config.cluster.job_id.empty()) << "pods of their own";
  const Error error = error_of(line({"--nnodes=2"}), pod(1).with({"CPPRUN_JOB_UID=../../etc"}));
  EXPECT_TRUE(holds(error.text, "CPPRUN_JOB_UID")) << error.text;
}

TEST(OptionsCluster, TheMachineOfAPodIsKnown) {
  const Machine machine = pod(1).with({"CPPRUN_NODE_NAME=ip-10-0-0-7.ec2.internal"});
  EXPECT_EQ(launch_of(line({}), machine).config.cluster.machine, "ip-10-0-0-7.ec2.internal");
  EXPECT_EQ(launch_of(line({}), pod(1)).config.cluster.machine, "");
  EXPECT_EQ(launch_of(line({"--cluster=none"}), machine).config.cluster.machine, "");
  const Error error = error_of(line({}), pod(1).with({"CPPRUN_NODE_NAME=a b"}));
  EXPECT_TRUE(holds(error.text, "CPPRUN_NODE_NAME is not the name of a Kubernetes node"));
}

TEST(OptionsCluster, ThePodsNameMayBeFullOrInAFile) {
  for (const std::string name : {"HOSTNAME=train-1.svc.default.svc.cluster.local", "HOSTNAME="}) {
    Machine machine = pod(1);
    std::erase(machine.variables, "HOSTNAME=train-1");
    machine.texts["/etc/hostname"] = "train-1\n";
    const RendezvousConfig config =
        config_of(line({"--nnodes=2"}), machine.with({name})).rendezvous;
    EXPECT_EQ(config.endpoint, (Endpoint{"train-0.svc.default.svc.cluster.local", 29'400})) << name;
    EXPECT_EQ(config.run_id, "train");
  }
}

TEST(OptionsCluster, APodThatCannotMeetTheOthersReportsWhy) {
  Machine machine = pod(1);
  machine.texts.erase("/etc/hosts");
  const Launch launch = launch_of(line({"--nnodes=2"}), machine);
  ASSERT_EQ(launch.warnings.size(), 1u);
  EXPECT_TRUE(holds(launch.warnings[0], "headless Service"));
  const Launch alone = launch_of(line({}), pod(1));
  ASSERT_EQ(alone.warnings.size(), 1u);
  EXPECT_TRUE(holds(alone.warnings[0], "PET_NNODES"));
  EXPECT_TRUE(launch_of(line({"--nnodes=1"}), pod(1)).warnings.empty());
  EXPECT_TRUE(launch_of(line({}), pod(0)).warnings.empty());
}

// What Kubeflow Trainer's torch policy sets.
TEST(OptionsCluster, TrainersStaticVariablesGiveWayToC10d) {
  const Machine machine = pod(1).with({"PET_NNODES=2", "PET_NPROC_PER_NODE=1", "PET_NODE_RANK=1",
                                       "PET_MASTER_ADDR=train-0.svc", "PET_MASTER_PORT=29500"});
  const RendezvousConfig as_set = config_of(line({}), machine).rendezvous;
  EXPECT_EQ(as_set.backend, Backend::Static);
  EXPECT_EQ(as_set.endpoint, (Endpoint{"train-0.svc", 29'500}));
  const Launch launch = launch_of(line({"--rdzv-backend=c10d"}), machine);
  EXPECT_EQ(launch.config.rendezvous.backend, Backend::Cpprun);
  EXPECT_EQ(launch.config.rendezvous.endpoint,
            (Endpoint{"train-0.svc.default.svc.cluster.local", 29'400}));
  EXPECT_EQ(launch.config.rendezvous.conf.is_host, false);
  EXPECT_TRUE(launch.warnings.empty());
}

TEST(OptionsCluster, PreemptSignalsAreSlurmsOnly) {
  const auto signals = [](const Strings& options, const Machine& machine) {
    return config_of(line(options), machine).cluster.stop_signals;
  };
  EXPECT_EQ(signals({}, step_on(1)), (std::vector<int>{SIGUSR1, SIGUSR2}));
  EXPECT_EQ(signals({"--preempt-signal=SIGUSR2"}, step_on(1)), std::vector<int>{SIGUSR2});
  EXPECT_TRUE(signals({"--preempt-signal=none"}, step_on(1)).empty());
  EXPECT_TRUE(signals({}, Machine{}).empty());
  EXPECT_TRUE(holds(error_of(line({"--preempt-signal=HUP"})).text, "write USR1, USR2"));
}

TEST(OptionsCluster, RequeueCounts) {
  const auto most = [](const std::string& option) {
    return config_of(line({option}), step_on(1)).cluster.requeues_max;
  };
  EXPECT_EQ(most("--requeue"), INT64_MAX);
  EXPECT_EQ(most("--requeue=5"), 5);
  EXPECT_FALSE(config_of(line({}), step_on(1)).cluster.requeues_max.has_value());
  EXPECT_TRUE(holds(error_of(line({"--requeue=0"}), step_on(1)).text, "--requeue=0"));
  EXPECT_TRUE(holds(launch_of(line({"--requeue"})).warnings.at(0), "this is no Slurm job"));
}

TEST(OptionsCluster, TheFirstNodeAsksForARequeueAfterAStop) {
  const ClusterConfig cluster =
      config_of(line({"--requeue=2"}), step_on(1, {"SLURM_RESTART_COUNT=1"})).cluster;
  for (int code : {75, 128 + SIGTERM}) EXPECT_TRUE(wants_requeue(cluster, code)) << code;
  for (int code : {0, 1, 2, 3, 69, 78, 128 + SIGINT})
    EXPECT_FALSE(wants_requeue(cluster, code)) << code;
  ClusterConfig other = cluster;
  other.restarts = 2;
  EXPECT_FALSE(wants_requeue(other, 75)) << "two requeues are allowed";
  EXPECT_FALSE(wants_requeue(config_of(line({"--requeue"}), step_on(2)).cluster, 75));
  EXPECT_FALSE(wants_requeue(config_of(line({}), step_on(1)).cluster, 75));
}

}  // namespace
}  // namespace cpprun::test
