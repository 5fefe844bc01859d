#include "launcher/options/option_table.hpp"

#include <algorithm>

#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr OptionRow kTable[] = {
    // name, field, value in help, since, help, note for docs/reference/flags.md, details
    {"nnodes", &ParsedOptions::nnodes, "N|MIN:MAX", "1.9",
     "Number of nodes, or a range for an elastic job. Default: 1."},
    {"nproc-per-node", &ParsedOptions::nproc_per_node, "N|KIND", "1.9",
     "Workers on this node: a number, cpu, gpu, xpu or auto. Default: 1.",
     "gpu counts NVIDIA devices without loading CUDA; xpu finds none; cpu is the number of CPUs "
     "online"},
    {"node-rank", &ParsedOptions::node_rank, "N", "1.9",
     "Rank of this node; needed by static jobs with several nodes. Default: 0.",
     "with c10d it is a wish that counts before host names; torchrun ignores it there"},
    {"role", &ParsedOptions::role, "NAME", "1.9",
     "Name of this node's workers, for their ranks by role and for line prefixes. Default: "
     "default."},
    {"virtual-local-rank", &ParsedOptions::virtual_local_rank, "", "2.10",
     "Each worker sees LOCAL_RANK=0 and only its own device in CUDA_VISIBLE_DEVICES."},
    {"numa-binding",
     &ParsedOptions::numa_binding,
     "BINDING",
     "2.9",
     "Bind each worker to CPUs near its GPU: node, socket, exclusive or core-complex.",
     "needs no numactl; a worker without a GPU: exit 1, as torchrun",
     {.choices = "node socket exclusive core-complex", .has_variable = false}},
    {"standalone", &ParsedOptions::standalone, "", "1.9",
     "Run on this node alone, with a rendezvous of its own; ignores the other rendezvous options. "
     "Also the default for one node without --rdzv-endpoint and --master-port.",
     "listens on loopback only; with --nnodes of two or more it is an error, where torchrun waits "
     "until its timeout"},
    {"rdzv-backend", &ParsedOptions::rdzv_backend, "NAME", "1.9",
     "static, c10d, cpprun (another name of c10d), or etcd. Default: static.",
     "c10d is cpprun's own rendezvous and does not work with torchrun agents; etcd uses the v3 API "
     "(docs/how-to/etcd.md), also as etcd-v2"},
    {"rdzv-endpoint", &ParsedOptions::rdzv_endpoint, "HOST[:PORT]", "1.9",
     "Where the nodes meet. Default with c10d: localhost:29400. With etcd: its members, "
     "HOST[:PORT],..."},
    {"rdzv-id", &ParsedOptions::rdzv_id, "ID", "1.9",
     "Name of the job, the same on each node. Default: none, a name that all jobs without "
     "--rdzv-id share: if that job has all its nodes, cpprun exits with 1."},
    {"job-name", &ParsedOptions::job_name, "NAME", "",
     "Name of the job, also with --standalone. Without --standalone the same as --rdzv-id.",
     "with --standalone torchrun draws a random id and ignores --rdzv-id"},
    {"rdzv-conf", &ParsedOptions::rdzv_conf, "K=V,...", "1.9",
     "Settings of the rendezvous, such as join_timeout=600,last_call_timeout=30.",
     "an unknown key gives a warning; store_type=file is an error; keys below"},
    {"local-addr", &ParsedOptions::local_addr, "ADDRESS", "2.0",
     "Address at which other nodes reach this one. Default: detected."},
    {"master-addr", &ParsedOptions::master_addr, "HOST", "1.9",
     "Static jobs: address of the node with rank 0. Default: 127.0.0.1."},
    {"master-port", &ParsedOptions::master_port, "PORT", "1.9",
     "Static jobs: port on that node. Default: 29500 where one is needed.",
     "unset by default as in torch 2.12; 0 on one node: any free port"},
    {"module",
     &ParsedOptions::module,
     "",
     "1.9",
     "The script is the name of a Python module, as in python -m.",
     "",
     {.letter = 'm'}},
    {"no-python", &ParsedOptions::no_python, "", "1.9",
     "Start the script directly, without Python.",
     "not needed for an ELF file, or an executable #! script that is neither .py nor for Python"},
    {"run-path", &ParsedOptions::run_path, "", "1.9",
     "Run the script with Python, whatever --module and --no-python are.",
     "python -u SCRIPT, as a launcher without Python has no interpreter to run it in"},
    {"start-method",
     &ParsedOptions::start_method,
     "METHOD",
     "1.9",
     "spawn, fork or forkserver. Accepted for compatibility; ignored: workers are always new "
     "programs.",
     "the value is checked; it matters only for torchrun's in-process workers",
     {.choices = "spawn fork forkserver", .treatment = Treatment::NoEffect}},
    {"max-restarts", &ParsedOptions::max_restarts, "N", "1.9",
     "How often cpprun restarts all workers after a failure. Default: 0.",
     "one budget for the whole job, not one for each node"},
    {"monitor-interval",
     &ParsedOptions::monitor_interval,
     "SECONDS",
     "1.9",
     "Accepted for compatibility; ignored: cpprun does not poll its workers.",
     "must be above 0",
     {.treatment = Treatment::NoEffect}},
    {"signals-to-handle", &ParsedOptions::signals_to_handle, "LIST", "2.9",
     "Signals to catch and pass on. Default: SIGTERM,SIGINT,SIGHUP,SIGQUIT."},
    {"shutdown-timeout", &ParsedOptions::shutdown_timeout, "SECONDS", "2.12",
     "Time between SIGTERM and SIGKILL when workers are stopped. Default: "
     "TORCH_ELASTIC_SHUTDOWN_TIMEOUT, else 30."},
    {"log-dir", &ParsedOptions::log_dir, "DIR", "1.9",
     "Folder for log files. Default: a temporary one, kept only if its logs may be needed.",
     "torchrun keeps the temporary one always; /dev/null: no files"},
    {"redirects",
     &ParsedOptions::redirects,
     "SPEC",
     "1.9",
     "Write output to files: 0 none, 1 stdout, 2 stderr, 3 both; or by local rank: 0:3,1:1.",
     "ranks above 9 work too",
     {.letter = 'r'}},
    {"tee",
     &ParsedOptions::tee,
     "SPEC",
     "1.9",
     "As --redirects, and print each line on the console too, with a prefix.",
     "",
     {.letter = 't'}},
    {"failure-format",
     &ParsedOptions::failure_format,
     "FORMAT",
     "",
     "What to print after a failure: summary (cpprun's own), torchrun (torchrun's block, for "
     "programs that read it) or both. Default: summary on a terminal, else both.",
     "",
     {.choices = "summary torchrun both"}},
    {"color",
     &ParsedOptions::color,
     "WHEN",
     "",
     "Colour of cpprun's own messages: auto, always or never. auto: on a terminal, unless NO_COLOR "
     "is set. Default: auto.",
     "",
     {.choices = "auto always never"}},
    {"quiet", &ParsedOptions::quiet, "", "", "Print errors only.", "", {.letter = 'q'}},
    {"verbose",
     &ParsedOptions::verbose,
     "",
     "",
     "Print also what cpprun does, with times; LOGLEVEL=INFO does the same.",
     "",
     {.letter = 'v'}},
    {"local-ranks-filter", &ParsedOptions::local_ranks_filter, "LIST", "2.3",
     "Show only the output of these local ranks, such as 0,2."},
    {"duplicate-stdout-filters", &ParsedOptions::duplicate_stdout_filters, "LIST", "2.10",
     "Copy tee'd stdout lines that contain one of these texts into filtered_stdout.log; write a "
     "comma as two."},
    {"duplicate-stderr-filters", &ParsedOptions::duplicate_stderr_filters, "LIST", "2.10",
     "The same for stderr and filtered_stderr.log."},
    {"log-line-prefix-template", &ParsedOptions::log_line_prefix_template, "TEXT", "2.15",
     "Prefix of tee'd lines, with ${role_name} ${local_rank} ${rank} ${hostname}. Default: "
     "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE, else [${role_name}${local_rank}]:."},
    {"logs-specs",
     &ParsedOptions::logs_specs,
     "NAME",
     "2.3",
     "An error, except for the value default: the name of a Python plug-in.",
     "the plug-in is Python code that runs inside torchrun; exit 1",
     {.has_variable = false, .treatment = Treatment::Refused}},
    {"event-log-handler", &ParsedOptions::event_log_handler, "NAME", "2.9",
     "console prints torchrun's event records on stderr; null prints none. Default: null.",
     "dynamic_rendezvous prints nothing, as in torchrun; other names: exit 1"},
    {"worker-store",
     &ParsedOptions::worker_store,
     "SERVER",
     "",
     "Which process serves MASTER_PORT: rank0 (worker 0) or agent (as in torchrun). Default: "
     "rank0; "
     "agent for static jobs with several nodes.",
     "rank0 is an error for static jobs with several nodes, where the agents use that port",
     {.choices = "rank0 agent"}},
    {"store-allow",
     &ParsedOptions::store_allow,
     "CLIENTS",
     "",
     "With --worker-store=agent: which clients may use the workers' store. all: every client; "
     "cpprun logs clients from addresses outside the job. members: cpprun refuses them. "
     "Default: all.",
     "job-wide, the first agent's value counts; needs a network without address translation "
     "between workers and coordinator",
     {.choices = "all members"}},
    {"pass-local-rank",
     &ParsedOptions::pass_local_rank,
     "STYLE",
     "",
     "For scripts of torch.distributed.launch: pass --local_rank=N as the script's first "
     "argument; with =dash, --local-rank=N.",
     "PET_PASS_LOCAL_RANK takes underscore or dash",
     {.choices = "underscore dash", .is_value_optional = true}},
    {"tune-malloc", &ParsedOptions::tune_malloc, "", "",
     "Let glibc's malloc in the workers keep large blocks instead of returning them to the kernel "
     "at every step. Variables that are already set stay.",
     "MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_, MALLOC_TOP_PAD_"},
    {"max-hangs", &ParsedOptions::max_hangs, "N", "",
     "How often cpprun restarts all workers after a hang. Default: as often as --max-restarts, "
     "counted apart.",
     "job-wide, the first agent's value counts; docs/how-to/bound-restarts.md"},
    {"max-node-losses", &ParsedOptions::max_node_losses, "N", "",
     "How many rounds may end because a node was lost: its agent died, or its lease has ended. One "
     "more ends the job. A node that was asked to leave is not lost. Default: any number.",
     "job-wide, the first agent's value counts; docs/how-to/bound-restarts.md"},
    {"restart-backoff", &ParsedOptions::restart_backoff, "SECONDS", "",
     "Delay restarts in quick succession: if rounds in a row fail or lose a node within 60 s of "
     "their start and without progress, the second restart waits so long, each further one twice "
     "as long, up to 32 times and 300 s. Default: 0, no delay.",
     "job-wide, the first agent's value counts; docs/how-to/bound-restarts.md"},
    {"startup-failures", &ParsedOptions::startup_failures, "N", "",
     "End the job after N rounds in a row in which a worker failed in the same way within 10 s of "
     "its start, even if --max-restarts allows more. Default: 0, never.",
     "job-wide, the first agent's value counts; the failure summary always reports such failures"},
    {"exclude-after", &ParsedOptions::exclude_after, "N", "",
     "Leave a host out of all further rounds after N faults: failures of workers whose root cause "
     "is there, failed starts, hangs, failed node checks, losses. Default: 0, never.",
     "job-wide, the first agent's value counts; docs/how-to/bad-nodes.md"},
    {"spares", &ParsedOptions::spares, "K", "",
     "Keep K of the nodes of --nnodes as spares: a round has K nodes less, and a spare takes the "
     "place of a lost or excluded node. Default: 0.",
     "not with static jobs"},
    {"stragglers",
     &ParsedOptions::stragglers,
     "report|drain|exclude",
     "",
     "What to do about a rank that computes more slowly than the others, by the compute times "
     "that workers report (cpprun_worker.step). report: name it. drain: also let its node save and "
     "leave. exclude: also exclude its host; a spare takes the place. Default: report.",
     "job-wide, the first agent's value counts; docs/how-to/bad-nodes.md",
     {.choices = "report drain exclude"}},
    {"node-check", &ParsedOptions::node_check, "COMMAND", "",
     "Command that checks this node before it joins and after each round. A node whose check "
     "fails takes part in no round.",
     "arguments separated by spaces, started without a shell; exit code 0 is good; "
     "docs/how-to/bad-nodes.md"},
    {"node-check-timeout", &ParsedOptions::node_check_timeout, "SECONDS", "",
     "A check that takes longer has failed. Default: 30."},
    {"link-check", &ParsedOptions::link_check, "MIB", "",
     "Before each round, nodes exchange MIB mebibytes in pairs, so that a node whose network link "
     "has failed is left out. 16 is a good value. Default: 0, no check.",
     "job-wide, the first agent's value counts; a node without it is not checked; "
     "docs/how-to/bad-nodes.md"},
    {"exclude-hook", &ParsedOptions::exclude_hook, "COMMAND", "",
     "Command to run when a host is excluded or taken in again, with \"exclude\" or \"readmit\", "
     "the host and the reason as its last arguments: passes the exclusion on to the scheduler.",
     "on each node that may host the coordinator; arguments separated by spaces, started without a "
     "shell; docs/how-to/bad-nodes.md"},
    {"state-dir", &ParsedOptions::state_dir, "DIR", "",
     "Folder in which the coordinator keeps the faults of hosts, the goodput and learned hang "
     "limits, for later jobs of the same --rdzv-id.",
     "on the node that hosts the coordinator, or shared"},
    {"notify-url-file", &ParsedOptions::notify_url_file, "FILE", "",
     "When the job has failed, send the failure summary as JSON to the URL in this file (http or "
     "https). Default: to that of CPPRUN_NOTIFY_URL, if it is set.",
     "on each node that may host the coordinator; docs/how-to/operators.md"},
    {"on-repeat",
     &ParsedOptions::on_repeat,
     "report|stop",
     "",
     "What to do about restarts that cannot help. report: the failure summary names a failure that "
     "has come before. stop: also end the job with exit code 78 when the same failure comes at the "
     "same step again, when 3 restarts bring no progress, or at an import or syntax error. "
     "Default: report.",
     "job-wide, the first agent's value counts; 78 asks schedulers not to requeue",
     {.choices = "report stop"}},
    {"regroup-timeout", &ParsedOptions::regroup_timeout, "SECONDS", "",
     "After another worker's failure, a worker that can regroup (cpprun_worker.elastic) has so "
     "long to leave its process group before it is stopped. 0: it is stopped at once. Default: "
     "10.",
     "torchrun restarts all workers"},
    {"timing", &ParsedOptions::timing, "", "",
     "Print the duration of each phase of the start and of each recovery on stderr.",
     "events.jsonl has the same"},
    {"snapshot-dir", &ParsedOptions::snapshot_dir, "DIR", "",
     "Folder of the workers' snapshots (step-<n>). Each round resumes from the newest complete "
     "one.",
     "shared by the nodes or local: a node fetches what it lacks from another node"},
    {"snapshot-replicas", &ParsedOptions::snapshot_replicas, "0|1", "",
     "1: a neighbour node keeps a copy of the snapshots in memory, so that a replaced node can "
     "resume from memory. Default: 0.",
     "needs a local --snapshot-dir; uses half of the memory for snapshots"},
    {"faults", &ParsedOptions::faults, "FILE", "",
     "Inject the faults of this plan into the job and check its expectations: exit 3 if one fails.",
     "CPPRUN_FAULTS can also name the file; docs/reference/faults.md"},
    {"seed", &ParsedOptions::seed, "N", "",
     "Random seed for the fault plan. Default: the plan's own seed, else 0.",
     "the same seed gives the same faults"},
    {"junit", &ParsedOptions::junit, "FILE", "",
     "Write the results of the faults and expectations to this file, as JUnit XML."},
    {"report", &ParsedOptions::report, "FILE", "",
     "At the end write one HTML file about the job: outcome, failure, events, ends of logs, as "
     "cpprunctl report does.",
     "written by node rank 0 of the last round; docs/reference/files.md"},
    {"hang-timeout", &ParsedOptions::hang_timeout, "auto|off|SECONDS", "",
     "How long workers may show no progress before cpprun collects their stacks and restarts them. "
     "auto learns the limit, and acts only if it is sure. Default: auto.",
     "restarts after hangs are counted apart: --max-hangs; docs/reference/supervision.md"},
    {"debug-rank", &ParsedOptions::debug_rank, "N", "",
     "The worker with this global rank waits for a debugger before its program starts. Turns hang "
     "detection off.",
     "attach with gdb -p; SIGCONT starts it without a debugger"},
    {"omp-threads", &ParsedOptions::omp_threads, "N|auto", "",
     "OMP_NUM_THREADS of each worker; auto divides this node's CPUs evenly. Default: as in "
     "torchrun, 1 if it is unset and there are several workers."},
    {"preload", &ParsedOptions::preload, "MODULE,...|auto|off", "",
     "Import these Python modules once per node and fork the workers from that process, so that "
     "starts and restarts need no imports. auto: the installed packages that the script imports. "
     "Default: off.",
     "if a fork is not safe, cpprun spawns the workers and prints the reason; "
     "docs/how-to/preload.md"},
    {"progress",
     &ParsedOptions::progress,
     "MODE",
     "",
     "auto: count the steps of Python scripts that do not report them, at the first optimizer of "
     "torch.optim that steps; for top, the dashboard and hang detection. Default: off.",
     "a folder in front of PYTHONPATH has a sitecustomize.py, which runs the user's own too",
     {.choices = "auto off"}},
    {"allowed-host", &ParsedOptions::allowed_host, "NAME,...", "",
     "More host names under which browsers and other HTTP clients may reach the rendezvous port. "
     "Always allowed: addresses, localhost, this machine's names and the endpoint's.",
     "requests with other names get 421; docs/explanation/security.md"},
    {"secret-file",
     &ParsedOptions::secret_file,
     "FILE",
     "",
     "File with a secret of 16 bytes or more that all agents of the job share: agents and "
     "coordinator then use TLS 1.3. Default: the file that CPPRUN_SECRET_FILE names, else "
     "CPPRUN_SECRET.",
     "a file that other users can read is an error; no effect on jobs of one node; "
     "docs/explanation/security.md",
     {.has_variable = false}},
    {"tls-cert", &ParsedOptions::tls_cert, "FILE", "",
     "Instead of a secret: this node's certificate (PEM), with --tls-key and --tls-ca.",
     "TLS 1.3; the certificate must allow server and client use"},
    {"tls-key", &ParsedOptions::tls_key, "FILE", "", "The private key of --tls-cert (PEM)."},
    {"tls-ca", &ParsedOptions::tls_ca, "FILE", "",
     "The CA that issued the certificates of the job's nodes (PEM).",
     "every holder of a certificate of this CA is a member: use a CA for these jobs only"},
    {"cluster",
     &ParsedOptions::cluster,
     "SCHEDULER",
     "",
     "Which scheduler supplies options that are not given, such as --nnodes and --rdzv-endpoint: "
     "auto, slurm, kubernetes or none (as torchrun). Default: auto.",
     "flags and PET_ variables have precedence; docs/how-to/slurm.md, docs/how-to/kubernetes.md",
     {.choices = "auto slurm kubernetes none"}},
    {"preempt-signal", &ParsedOptions::preempt_signal, "LIST|none", "",
     "Under Slurm: signals that make the job save and stop, like SIGTERM. Default: USR1,USR2.",
     "no effect elsewhere; with none they act as in torchrun"},
    {"slurm-secret",
     &ParsedOptions::slurm_secret,
     "WHEN",
     "",
     "Under Slurm, for a job of several nodes without a secret or certificates: make a secret in "
     "the submit directory: always, never, or auto, which does so if that is on a shared file "
     "system. Default: auto.",
     "docs/explanation/security.md",
     {.choices = "auto always never"}},
    {"requeue",
     &ParsedOptions::requeue,
     "N",
     "",
     "Under Slurm: requeue the job after a stop that can be resumed, up to N times (without N: "
     "always).",
     "node 0 runs scontrol requeue; PET_REQUEUE takes yes or a number; docs/how-to/slurm.md",
     {.is_value_optional = true}},
    {"hosts",
     &ParsedOptions::hosts,
     "HOST[:N],...",
     "",
     "Start the job on these hosts over ssh, with N workers on each (without N: "
     "--nproc-per-node). The options and the script are the same on all; rank 0 is on the first.",
     "docs/how-to/ssh.md",
     {.has_variable = false}},
    {"hostfile",
     &ParsedOptions::hostfile,
     "FILE",
     "",
     "The same with a file of hosts, one per line: HOST, HOST slots=N or HOST:N.",
     "the formats of OpenMPI, DeepSpeed and Horovod",
     {.has_variable = false}},
    {"include",
     &ParsedOptions::include,
     "HOST@...",
     "",
     "Only these hosts of the list, separated by @ or a comma.",
     "as DeepSpeed's, for whole hosts; with --hosts or --hostfile",
     {.has_variable = false}},
    {"exclude",
     &ParsedOptions::exclude,
     "HOST@...",
     "",
     "All hosts of the list but these.",
     "as --include",
     {.has_variable = false}},
    {"export",
     &ParsedOptions::exported,
     "NAME[=VALUE]",
     "",
     "Set this variable on all hosts; without a value, as it is here. May be repeated.",
     "as mpirun's -x; it is in no command line on the hosts",
     {.letter = 'x', .has_variable = false}},
    {"ssh", &ParsedOptions::ssh, "PROGRAM [ARGUMENT...]", "",
     "The ssh program for --hosts, with arguments that come before cpprun's own. Default: ssh.",
     "split at blanks, without a shell"},
    {"ssh-tree",
     &ParsedOptions::ssh_tree,
     "N",
     "",
     "With --hosts: hosts reach further hosts by ssh, up to N each (without N: 32), so that this "
     "machine makes few connections.",
     "each host needs a key for others; PET_SSH_TREE takes yes or a number",
     {.is_value_optional = true}},
    {"remote-cpprun", &ParsedOptions::remote_cpprun, "PATH", "",
     "Path of cpprun on the hosts. Default: the path of this cpprun."},
    {"stdin-control",
     &ParsedOptions::stdin_control,
     "",
     "",
     "Read the job's secret, variables and requests to stop from standard input, and stop when it "
     "ends. --hosts starts its agents so.",
     "the workers' standard input is empty",
     {.has_variable = false}},
    {"help",
     {},
     "",
     "1.9",
     "Show this text; -h shows the common options only.",
     "",
     {.letter = 'h', .has_variable = false}},
    {"version", {}, "", "", "Show the version.", "", {.has_variable = false}},
    {"print-completion",
     &ParsedOptions::print_completion,
     "SHELL",
     "2.15",
     "Print a completion script for bash, zsh or tcsh.",
     "needs nothing installed",
     {.choices = "bash zsh tcsh", .has_variable = false}},
};

// The headings of the groups in help, by the first option of each.
constexpr std::pair<std::string_view, std::string_view> kHeadings[] = {
    {"nnodes", "Nodes and workers"}, {"standalone", "Where nodes meet"},
    {"module", "The program"},       {"max-restarts", "Failures and stopping"},
    {"log-dir", "Output and logs"},  {"worker-store", "Only in cpprun"},
    {"hosts", "Hosts over ssh"},     {"help", "Information"},
};

// The options that -h explains, each on one line.
constexpr CommonOption kCommon[] = {
    {"nproc-per-node", "workers on this node: number or gpu (1)"},
    {"nnodes", "nodes, or a range if elastic (1)"},
    {"max-restarts", "restarts after failures (0)"},
    {"standalone", "run on this node alone"},
    {"rdzv-backend", "c10d for several nodes; static, etcd"},
    {"rdzv-endpoint", "where the nodes meet, the same on each node"},
    {"rdzv-id", "name of the job, the same on each node"},
    {"job-name", "name of the job, also with --standalone"},
    {"node-rank", "static jobs: rank of this node"},
    {"master-addr", "static jobs: address of node 0"},
    {"master-port", "static jobs: port of node 0"},
    {"module", "the script is a module, as in python -m"},
    {"no-python", "start the script without Python"},
    {"log-dir", "folder for log files"},
    {"redirects", "output to files: 1 stdout, 2 stderr, 3 both"},
    {"tee", "the same, and to the console too"},
    {"hang-timeout", "seconds without progress that are a hang"},
    {"snapshot-dir", "folder of the workers' snapshots"},
    {"preload", "import modules once, fork the workers"},
    {"omp-threads", "OMP_NUM_THREADS of each worker"},
    {"failure-format", "failure output: summary, torchrun or both"},
    {"color", "auto, always or never"},
    {"quiet", "print errors only"},
    {"verbose", "print what cpprun does, with times"},
    {"version", "show the version"},
};

std::string replaced(std::string_view name, char from, char to) {
  std::string out(name);
  std::replace(out.begin(), out.end(), from, to);
  return out;
}

}  // namespace

OptionKind OptionRow::kind() const {
  using enum OptionKind;
  constexpr OptionKind kKinds[] = {Question, Flag, Int, Int, Float, Text};
  static_assert(std::size(kKinds) == std::variant_size_v<OptionField>);
  return kKinds[field.index()];
}

bool OptionRow::takes_value() const {
  return kind() != OptionKind::Flag && kind() != OptionKind::Question && !details.is_value_optional;
}

std::span<const OptionRow> option_table() { return kTable; }
std::span<const CommonOption> common_options() { return kCommon; }

const OptionRow* find_option(std::string_view dashed_name) {
  for (const OptionRow& row : kTable) {
    if (row.name == dashed_name) return &row;
  }
  return nullptr;
}

std::string_view heading_before(const OptionRow& row) {
  for (const auto& [first, heading] : kHeadings) {
    if (row.name == first) return heading;
  }
  return "";
}

std::string dashed(std::string_view name) { return replaced(name, '_', '-'); }
std::string underscored(std::string_view name) { return replaced(name, '-', '_'); }

std::string variable_name(const OptionRow& row) {
  std::string name(kVariablePrefix);
  for (char c : underscored(row.name)) {
    name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

std::vector<std::string> choice_values(const OptionRow& row) {
  if (row.details.choices.empty()) return {};
  return text::split(row.details.choices, ' ');
}

}  // namespace cpprun
