// Every flag of the table, in both spellings and by its variable, reaches the configuration.
#include <set>

#include "launcher/options/option_table.hpp"
#include "launcher/options/parse.hpp"
#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::test {
namespace {

struct FlagCase {
  std::string name;   // dashed
  std::string value;  // "" for a flag
  std::function<bool(const AgentConfig&)> is_there;
  Strings more = {};  // other options that it needs
};

std::vector<FlagCase> meeting_cases() {
  return {
      {"slurm-secret", "never", [](auto& c) { return c.rendezvous.tls.step_secret_file.empty(); }},
      {"nnodes",
       "2:3",
       [](auto& c) { return c.rendezvous.min_nodes == 2 && c.rendezvous.max_nodes == 3; },
       {"--rdzv-backend=c10d"}},
      {"nproc-per-node", "3", [](auto& c) { return c.workers.nproc == 3; }},
      {"node-rank", "1", [](auto& c) { return c.rendezvous.node_rank == 1; }, {"--nnodes=2"}},
      {"role", "pupil", [](auto& c) { return c.workers.role == "pupil"; }},
      {"virtual-local-rank", "", [](auto& c) { return c.workers.is_virtual_local_rank; }},
      {"standalone",
       "",
       [](auto& c) { return c.rendezvous.is_standalone && c.rendezvous.run_id == "a-fresh-id"; },
       {"--rdzv-id=x", "--master-port=5"}},
      {"rdzv-backend", "c10d",
       [](auto& c) {
         return c.rendezvous.backend == Backend::Cpprun && !c.rendezvous.is_standalone;
       }},
      {"rdzv-endpoint",
       "[::1]:77",
       [](auto& c) {
         return c.rendezvous.endpoint == Endpoint{"::1", 77};
       },
       {"--rdzv-backend=c10d"}},
      {"rdzv-id",
       "job-17",
       [](auto& c) { return c.rendezvous.run_id == "job-17"; },
       {"--rdzv-backend=c10d"}},
      {"failure-format", "torchrun",
       [](auto& c) { return c.failure_format == FailureFormat::Torchrun; }},
      {"job-name", "job-17", [](auto& c) { return c.rendezvous.run_id == "job-17"; }},
      {"rdzv-conf", "join_timeout=9",
       [](auto& c) { return c.rendezvous.conf.join_timeout == seconds(9); }},
      {"local-addr", "10.0.0.5", [](auto& c) { return c.rendezvous.local_addr == "10.0.0.5"; }},
      {"master-addr",
       "n7",
       [](auto& c) { return c.rendezvous.master_addr == "n7"; },
       {"--master-port=5"}},
      {"store-allow",
       "members",
       [](auto& c) { return c.rendezvous.is_store_for_members; },
       {"--worker-store=agent"}},
      {"master-port", "1234", [](auto& c) { return c.rendezvous.master_port == 1234; }},
  };
}

std::vector<FlagCase> node_cases() {
  return {{"exclude-after",
           "2",
           [](auto& c) { return c.exclude_after == 2; },
           {"--nnodes=2", "--rdzv-backend=c10d"}},
          {"stragglers",
           "drain",
           [](auto& c) { return c.stragglers == StragglerPolicy::Drain; },
           {"--nnodes=2", "--rdzv-backend=c10d"}},
          {"spares",
           "1",
           [](auto& c) { return c.rendezvous.min_nodes == 2 && c.rendezvous.max_nodes == 2; },
           {"--nnodes=2:3", "--rdzv-backend=c10d", "--rdzv-id=x"}},
          {"node-check", " check  --all ",
           [](auto& c) {
             return c.node_check.command == std::vector<std::string>{"check", "--all"};
           }},
          {"exclude-hook", "drain  it",
           [](auto& c) {
             return c.exclude_hook == std::vector<std::string>{"drain", "it"};
           }},
          {"node-check-timeout",
           "2.5",
           [](auto& c) { return c.node_check.timeout == seconds(2.5); },
           {"--node-check=x"}},
          {"link-check", "16", [](auto& c) { return c.link_check_bytes == 16 << 20; }},
          {"max-hangs", "2", [](auto& c) { return c.max_hangs == 2; }},
          {"max-node-losses", "0", [](auto& c) { return c.max_node_losses == 0; }},
          {"restart-backoff", "1.5", [](auto& c) { return c.restart_backoff == seconds(1.5); }},
          {"notify-url-file", "/urls/ops",
           [](auto& c) { return c.notify_url == "https://hooks.example.org/T0"; }},
          {"state-dir", "here", [](auto& c) { return c.state_dir == "here"; }}};
}

std::vector<FlagCase> worker_cases() {
  return {
      {"module", "",
       [](auto& c) {
         return c.workers.program == Strings{"/opt/bin/python3", "-u", "-m", "train.py"};
       }},
      {"run-path",
       "",
       [](auto& c) {
         return c.workers.program == Strings{"/opt/bin/python3", "-u", "train.py"};
       },
       {"--no-python"}},
      {"start-method", "fork", [](auto&) { return true; }},
      {"max-restarts", "4", [](auto& c) { return c.max_restarts == 4; }},
      {"monitor-interval", "0.2", [](auto&) { return true; }},
      {"signals-to-handle", "SIGUSR1,SIGTERM",
       [](auto& c) {
         return c.signals == std::vector<int>{10, 15} && c.signals_text == "SIGUSR1,SIGTERM";
       }},
      {"shutdown-timeout", "7", [](auto& c) { return c.stop_grace == seconds(7); }},
      {"log-dir", "/logs", [](auto& c) { return c.logs.dir == "/logs"; }},
      {"redirects", "3", [](auto& c) { return c.logs.redirects.at(0).bits == 3; }},
      {"tee", "0:1", [](auto& c) { return c.logs.tee.at(0).bits == 1; }},
      {"local-ranks-filter", "0",
       [](auto& c) { return c.logs.local_ranks_filter == std::set<int>{0}; }},
      {"duplicate-stdout-filters", "a,b",
       [](auto& c) {
         return c.logs.duplicate_stdout_filters == Strings{"a", "b"};
       }},
      {"duplicate-stderr-filters", "a,,b",
       [](auto& c) { return c.logs.duplicate_stderr_filters == Strings{"a,b"}; }},
      {"log-line-prefix-template",
       "${rank}:", [](auto& c) { return c.logs.prefix_template == "${rank}:"; }},
      {"logs-specs", "default", [](auto&) { return true; }},
      {"event-log-handler", "console", [](auto& c) { return c.event_log_handler == "console"; }},
      {"worker-store", "agent",
       [](auto& c) { return c.rendezvous.worker_store == WorkerStore::Agent; }},
      {"startup-failures", "3", [](auto& c) { return c.startup_failures == 3; }},
      {"timing", "", [](auto& c) { return c.shows_timing; }},
      {"tune-malloc", "", [](auto& c) { return c.workers.tunes_malloc; }},
      {"snapshot-dir", "here", [](auto& c) { return c.snapshot_dir == "here"; }},
      {"snapshot-replicas", "1", [](auto& c) { return c.keeps_replicas; }, {"--snapshot-dir=here"}},
      {"hang-timeout", "2.5",
       [](auto& c) {
         return c.hangs.mode == HangConfig::Mode::Fixed && c.hangs.limit == seconds(2.5);
       }},
      {"debug-rank", "3",
       [](auto& c) { return c.debug_rank == 3 && c.hangs.mode == HangConfig::Mode::Off; }},
      {"allowed-host", "a.example, b",
       [](auto& c) {
         return c.rendezvous.allowed_hosts == std::vector<std::string>{"a.example", "b"};
       }},
      {"cluster", "none", [](auto& c) { return c.cluster.kind == ClusterConfig::Kind::None; }},
      {"preempt-signal", "USR1", [](auto& c) { return c.cluster.stop_signals.empty(); }},
      {"requeue", "4", [](auto& c) { return c.cluster.requeues_max == 4; }},
      {"omp-threads", "4", [](auto& c) { return c.workers.omp_threads == 4; }},
      {"faults", "plan.json",
       [](auto& c) { return c.faults.plan && c.faults.plan->faults.size() == 1; }},
      {"seed",
       "7",
       [](auto& c) { return c.faults.plan && c.faults.plan->seed == 7; },
       {"--faults=plan.json"}},
      {"junit",
       "out.xml",
       [](auto& c) { return c.faults.junit == "out.xml"; },
       {"--faults=plan.json"}},
      {"pass-local-rank", "dash",
       [](auto& c) { return c.workers.pass_local_rank == PassLocalRank::Dash; }},
  };
}

FlagCase control_case() {
  return {"stdin-control", "", [](auto& c) { return c.shares_console; }};
}

FlagCase repeat_case() {
  return {"on-repeat", "stop", [](auto& c) { return c.stops_on_repeat; }};
}

FlagCase regroup_case() {
  return {"regroup-timeout", "8", [](auto& c) { return c.regroup_timeout == seconds(8); }};
}

FlagCase preload_case() {
  return {"preload", "torch,numpy.linalg", [](auto& c) {
            return c.workers.preload.mode == PreloadConfig::Mode::List &&
                   c.workers.preload.modules == Strings{"torch", "numpy.linalg"};
          }};
}

std::vector<FlagCase> tls_cases() {
  return {
      {"secret-file", "secret",
       [](auto& c) { return c.rendezvous.tls.secret && c.rendezvous.tls.cert_file.empty(); }},
      {"tls-cert",
       "own.pem",
       [](auto& c) { return c.rendezvous.tls.cert_file == "own.pem"; },
       {"--tls-key=own.key", "--tls-ca=ca.pem"}},
      {"tls-key",
       "own.key",
       [](auto& c) { return c.rendezvous.tls.key_file == "own.key"; },
       {"--tls-cert=own.pem", "--tls-ca=ca.pem"}},
      {"tls-ca",
       "ca.pem",
       [](auto& c) { return c.rendezvous.tls.ca_file == "ca.pem"; },
       {"--tls-cert=own.pem", "--tls-key=own.key"}},
  };
}

std::vector<FlagCase> flag_cases() {
  std::vector<FlagCase> all = meeting_cases();
  all.push_back(preload_case());
  all.push_back(regroup_case());
  all.push_back(control_case());
  all.push_back(repeat_case());
  for (const FlagCase& c : worker_cases()) all.push_back(c);
  for (const FlagCase& c : tls_cases()) all.push_back(c);
  for (const FlagCase& c : node_cases()) all.push_back(c);
  return all;
}

TEST(OptionsFlags, EachWorksInBothSpellingsAndByVariable) {
  Machine machine;
  machine.files["train"] = {FileKind::Directory, true};  // -m train.py may name a module in it
  for (const FlagCase& c : flag_cases()) {
    const OptionRow* row = find_option(c.name);
    ASSERT_NE(row, nullptr) << c.name;
    for (const std::string& name : {c.name, underscored(c.name)}) {
      Strings args = c.more;
      args.push_back("--" + name + (c.value.empty() ? "" : "=" + c.value));
      EXPECT_TRUE(c.is_there(config_of(line(args), machine))) << name;
    }
    if (row->details.has_variable) {
      std::string entry = variable_name(*row) + "=" + (c.value.empty() ? "1" : c.value);
      EXPECT_TRUE(c.is_there(config_of(line(c.more), machine.with({entry})))) << entry;
    }
  }
}

TEST(OptionsFlags, EveryRowOfTheTableHasATest) {
  std::set<std::string> tested = {"no-python",        "numa-binding", "help",  "version",
                                  "print-completion", "color",        "quiet", "verbose",
                                  "progress",         "report"};  // not for the agent
  for (const char* name :
       {"hosts", "hostfile", "include", "exclude", "export", "ssh", "ssh-tree", "remote-cpprun"}) {
    tested.insert(name);  // launch_plan_test.cpp
  }
  for (const FlagCase& c : flag_cases()) tested.insert(c.name);
  for (const OptionRow& row : option_table())
    EXPECT_TRUE(tested.contains(std::string(row.name))) << row.name;
  EXPECT_EQ(tested.size(), option_table().size());
}

TEST(OptionsFlags, StepsOfPythonProgramsAreCountedOnRequest) {
  EXPECT_FALSE(launch_of(line({})).counts_steps);
  EXPECT_TRUE(launch_of(line({"--progress=auto"})).counts_steps);
  EXPECT_FALSE(launch_of(line({"--progress=off"})).counts_steps);
}

TEST(OptionsFlags, ReportOfTheJob) {
  EXPECT_EQ(launch_of(line({})).report, "");
  EXPECT_EQ(launch_of(line({"--report=out.html"})).report, "out.html");
  EXPECT_EQ(launch_of(line({}), Machine{}.with({"PET_REPORT=out.html"})).report, "out.html");
}

TEST(OptionsFlags, ConsoleOptions) {
  EXPECT_EQ(launch_of(line({})).console.log_level, "");
  EXPECT_EQ(launch_of(line({"-q"})).console.log_level, "ERROR");
  EXPECT_EQ(launch_of(line({"--quiet"})).console.log_level, "ERROR");
  EXPECT_EQ(launch_of(line({"-v"})).console.log_level, "INFO");
  EXPECT_EQ(launch_of(line({"--color=never"})).console.color, "never");
  EXPECT_EQ(launch_of(line({}), Machine{}.with({"PET_COLOR=always"})).console.color, "always");
}

TEST(OptionsFlags, NoPythonInBothSpellings) {
  for (const char* name : {"--no-python", "--no_python"}) {
    AgentConfig config = config_of({name, "sh", "-c", "echo $0", "zero"});
    EXPECT_EQ(config.workers.program, Strings{"sh"});
    EXPECT_EQ(config.workers.arguments, (Strings{"-c", "echo $0", "zero"}));
    EXPECT_EQ(config.workers.title, "sh");
  }
}

TEST(OptionsFlags, DefaultsMatchTorchrun) {
  AgentConfig config = config_of({"train.py"});
  EXPECT_EQ(config.workers.nproc, 1);
  EXPECT_EQ(config.workers.role, "default");
  EXPECT_EQ(config.workers.title, "train.py");
  EXPECT_EQ(config.workers.pass_local_rank, PassLocalRank::No);
  EXPECT_FALSE(config.workers.set_omp_num_threads);
  EXPECT_FALSE(config.workers.tunes_malloc);
  EXPECT_EQ(config.max_restarts, 0);
  EXPECT_EQ(config.stop_grace, seconds(30));
  EXPECT_EQ(config.signals, (std::vector<int>{15, 2, 1, 3}));
  EXPECT_EQ(config.signals_text, "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
  EXPECT_EQ(config.logs.redirects.size(), 1u);
  EXPECT_EQ(config.logs.tee.at(0).bits, 0);
  EXPECT_FALSE(config.logs.local_ranks_filter.has_value());
  EXPECT_FALSE(config.logs.prefix_template.has_value());
  EXPECT_EQ(config.temporary_dir, "/tmp");
  EXPECT_EQ(config.event_log_handler, "null");
  EXPECT_EQ(config.environment, Machine{}.variables);
}

TEST(OptionsFlags, WarnsOfMoreWorkersThanVisibleGpus) {
  const auto warnings = [](const std::string& workers, int gpus) {
    Machine machine;
    machine.gpus = GpuProbe{gpus, ""};
    return launch_of({"--nproc-per-node=" + workers, "train.py"}, machine).warnings;
  };
  ASSERT_EQ(warnings("3", 2).size(), 1u);
  EXPECT_TRUE(holds(warnings("3", 2)[0], "3 workers but 2 visible GPUs"));
  EXPECT_TRUE(warnings("2", 2).empty());
  EXPECT_TRUE(warnings("3", 0).empty()) << "a machine without any is no surprise";
  EXPECT_TRUE(warnings("gpu", 2).empty());
}

TEST(OptionsFlags, TheLastValueWins) {
  EXPECT_EQ(config_of(line({"--nproc=2", "--nproc_per_node", "3"})).workers.nproc, 3);
  EXPECT_EQ(config_of(line({"--role=a", "--role=b", "--role="})).workers.role, "");
}

TEST(OptionsFlags, ValuesReachTheConfigurationUnchanged) {
  for (const std::string odd : {"[a,b]", "{x}", "a b", "\"q\"", "a=b", "%%", "日本", "-x", "'"}) {
    EXPECT_EQ(config_of(line({"--role=" + odd})).workers.role, odd);
    EXPECT_EQ(config_of({"train.py", odd, "--role=x"}).workers.arguments,
              (Strings{odd, "--role=x"}));
  }
}

TEST(OptionsFlags, ATildeIsTheHomeFolder) {
  EXPECT_EQ(config_of(line({"--snapshot-dir=~/runs"})).snapshot_dir, "/root/runs");
  EXPECT_EQ(config_of(line({"--log-dir", "~"})).logs.dir, "/root");
  EXPECT_EQ(config_of(line({"--snapshot-dir=~other/runs"})).snapshot_dir, "~other/runs");
  EXPECT_EQ(config_of(line({"--rdzv-id=~"})).rendezvous.run_id, "~") << "no path";
  Machine homeless;
  std::erase(homeless.variables, "HOME=/root");
  EXPECT_EQ(config_of(line({"--snapshot-dir=~/runs"}), homeless).snapshot_dir, "~/runs");
}

TEST(OptionsFlags, PassLocalRankUsesTheOldSpellingByDefault) {
  EXPECT_EQ(config_of(line({"--pass-local-rank"})).workers.pass_local_rank,
            PassLocalRank::Underscore);
  EXPECT_EQ(config_of(line({"--pass-local-rank=dash"})).workers.pass_local_rank,
            PassLocalRank::Dash);
  EXPECT_TRUE(holds(error_of(line({}), Machine{}.with({"PET_PASS_LOCAL_RANK=1"})).text,
                    "underscore or dash"));
}

TEST(OptionsFlags, PassesEnvironmentVariablesOn) {
  Machine machine = Machine{}.with({"TMPDIR=/scratch", "TORCHELASTIC_ERROR_FILE=/e.json",
                                    "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=5",
                                    "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=<${rank}>"});
  AgentConfig config = config_of({"train.py"}, machine);
  EXPECT_EQ(config.temporary_dir, "/scratch");
  EXPECT_EQ(config.own_error_file, "/e.json");
  EXPECT_EQ(config.stop_grace, seconds(5));
  EXPECT_EQ(config.logs.prefix_template, "<${rank}>");
  EXPECT_EQ(config.environment, machine.variables);
  config = config_of({"--shutdown-timeout=0", "--log-line-prefix-template=x", "train.py"}, machine);
  EXPECT_EQ(config.stop_grace, seconds(0));
  EXPECT_EQ(config.logs.prefix_template, "x");
  EXPECT_EQ(config_of({"train.py"}, Machine{}.with({"TMPDIR=/gone"})).temporary_dir, "/tmp");
}

}  // namespace
}  // namespace cpprun::test
