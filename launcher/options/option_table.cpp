#include "launcher/options/option_table.hpp"

#include <algorithm>

#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr OptionRow kTable[] = {
    // name, field, value in help, since, help, note for docs/reference/flags.md, details
    {"nnodes", &ParsedOptions::nnodes, "N|MIN:MAX", "1.9",
     "Number of nodes, or a range for an elastic job. Default: 1."},
    {"nproc-per-node", &ParsedOptions::nproc_per_node, "N|WORD", "1.9",
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
     "WORD",
     "2.9",
     "Bind each worker to CPUs near its GPU: node, socket, exclusive or core-complex.",
     "needs no numactl; a worker without a GPU: exit 1, as torchrun",
     {.choices = "node socket exclusive core-complex", .has_variable = false}},
    {"standalone", &ParsedOptions::standalone, "", "1.9",
     "One node with a rendezvous of its own; overrides the other rendezvous options. Also what "
     "happens when neither endpoint nor master port is given for one node.",
     "listens on loopback only; refused if --nnodes asks for two or more, for whom torchrun waits "
     "in vain"},
    {"rdzv-backend", &ParsedOptions::rdzv_backend, "NAME", "1.9",
     "static, c10d, cpprun (another name of c10d), or etcd. Default: static.",
     "c10d is cpprun's own rendezvous and does not mix with torchrun agents; etcd is asked by its "
     "v3 interface (docs/how-to/etcd.md), also as etcd-v2"},
    {"rdzv-endpoint", &ParsedOptions::rdzv_endpoint, "HOST[:PORT]", "1.9",
     "Where the nodes meet. Default with c10d: localhost:29400. With etcd: its members, "
     "HOST[:PORT],..."},
    {"rdzv-id", &ParsedOptions::rdzv_id, "ID", "1.9",
     "Name of the job, the same on each node. Default: none, which an agent shares with other "
     "jobs: where that job is full, it ends with 1."},
    {"rdzv-conf", &ParsedOptions::rdzv_conf, "K=V,...", "1.9",
     "Details of the rendezvous, such as join_timeout=600,last_call_timeout=30.",
     "an unknown key is warned about; store_type=file is refused; keys below"},
    {"local-addr", &ParsedOptions::local_addr, "ADDRESS", "2.0",
     "Address by which other nodes reach this one. Default: found out."},
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
    {"no-python", &ParsedOptions::no_python, "", "1.9", "Start the script itself, without Python.",
     "not needed for an ELF file, or an executable #! script that is neither .py nor for Python"},
    {"run-path", &ParsedOptions::run_path, "", "1.9",
     "Run the script with Python whatever the two options above say.",
     "python -u SCRIPT, as a launcher without Python has no interpreter to run it in"},
    {"start-method",
     &ParsedOptions::start_method,
     "WORD",
     "1.9",
     "spawn, fork or forkserver. Without effect: workers are always new programs.",
     "the word is checked; only torchrun's in-process workers know the difference",
     {.choices = "spawn fork forkserver", .treatment = Treatment::NoEffect}},
    {"max-restarts", &ParsedOptions::max_restarts, "N", "1.9",
     "How often all workers are started again after a failure. Default: 0.",
     "one budget for the whole job, not one for each node"},
    {"monitor-interval",
     &ParsedOptions::monitor_interval,
     "SECONDS",
     "1.9",
     "Without effect: the end of a worker is an event, nothing is polled.",
     "must still be above 0",
     {.treatment = Treatment::NoEffect}},
    {"signals-to-handle", &ParsedOptions::signals_to_handle, "LIST", "2.9",
     "Signals to catch and pass on. Default: SIGTERM,SIGINT,SIGHUP,SIGQUIT."},
    {"shutdown-timeout", &ParsedOptions::shutdown_timeout, "SECONDS", "2.12",
     "Time between SIGTERM and SIGKILL when workers are stopped. Default: "
     "TORCH_ELASTIC_SHUTDOWN_TIMEOUT, else 30."},
    {"log-dir", &ParsedOptions::log_dir, "DIR", "1.9",
     "Folder for log files. Default: a temporary one, kept after a failure.",
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
     "The same, and show it too, each line with a prefix.",
     "",
     {.letter = 't'}},
    {"local-ranks-filter", &ParsedOptions::local_ranks_filter, "LIST", "2.3",
     "Only these local ranks reach the console, such as 0,2."},
    {"duplicate-stdout-filters", &ParsedOptions::duplicate_stdout_filters, "LIST", "2.10",
     "Copy tee'd stdout lines that hold one of these texts into filtered_stdout.log; a double "
     "comma is a comma."},
    {"duplicate-stderr-filters", &ParsedOptions::duplicate_stderr_filters, "LIST", "2.10",
     "The same for stderr and filtered_stderr.log."},
    {"log-line-prefix-template", &ParsedOptions::log_line_prefix_template, "TEXT", "2.15",
     "Prefix of tee'd lines, with ${role_name} ${local_rank} ${rank} ${hostname}. Default: "
     "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE, else [${role_name}${local_rank}]:."},
    {"logs-specs",
     &ParsedOptions::logs_specs,
     "NAME",
     "2.3",
     "Refused, except for the word default: it names a Python plug-in.",
     "the plug-in is Python code inside torchrun's process; exit 1",
     {.has_variable = false, .treatment = Treatment::Refused}},
    {"event-log-handler", &ParsedOptions::event_log_handler, "NAME", "2.9",
     "console prints torchrun's event records on stderr; null prints none. Default: null.",
     "dynamic_rendezvous is silent, as under torchrun; other names: exit 1"},
    {"worker-store",
     &ParsedOptions::worker_store,
     "WORD",
     "",
     "Who serves MASTER_PORT: rank0 (worker 0 itself) or agent (as torchrun). Default: rank0, but "
     "agent for static jobs with several nodes.",
     "rank0 is refused for static jobs with several nodes, where the port is the agents' own",
     {.choices = "rank0 agent"}},
    {"store-allow",
     &ParsedOptions::store_allow,
     "WORD",
     "",
     "With --worker-store=agent: which clients may use the workers' store. all: every client; "
     "clients from other addresses than those of the job's nodes are logged. members: these are "
     "refused. Default: all.",
     "job-wide, the first agent's value counts; needs a network without address translation "
     "between workers and coordinator",
     {.choices = "all members"}},
    {"pass-local-rank",
     &ParsedOptions::pass_local_rank,
     "WORD",
     "",
     "For scripts of the old launcher: put --local_rank=N before the script's arguments; with "
     "=dash it is --local-rank=N.",
     "PET_PASS_LOCAL_RANK takes underscore or dash",
     {.choices = "underscore dash", .is_value_optional = true}},
    {"tune-malloc", &ParsedOptions::tune_malloc, "", "",
     "Let glibc's malloc in the workers keep big blocks instead of giving them back at every step; "
     "what is set already stays.",
     "MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_, MALLOC_TOP_PAD_"},
    {"startup-failures", &ParsedOptions::startup_failures, "N", "",
     "End the job when a worker has failed within 10 s of its start in the same way in N rounds in "
     "a row, whatever --max-restarts allows. Default: 0, never.",
     "job-wide, the first agent's value counts; the failure summary tells of such failures always"},
    {"timing", &ParsedOptions::timing, "", "",
     "Print on stderr where the time of the start and of each recovery went, phase by phase.",
     "events.jsonl has the same"},
    {"snapshot-dir", &ParsedOptions::snapshot_dir, "DIR", "",
     "Folder in which the workers keep their snapshots (step-<n>): each round begins with the "
     "newest complete one.",
     "may be shared by the nodes, or each node's own: what a node lacks it fetches from another"},
    {"snapshot-replicas", &ParsedOptions::snapshot_replicas, "0|1", "",
     "1: a neighbour node keeps a copy of what the workers keep in memory, so that a node that is "
     "replaced resumes from memory too. Default: 0.",
     "with --snapshot-dir, each node's own; takes half of the memory for snapshots"},
    {"faults", &ParsedOptions::faults, "FILE", "",
     "Inject the faults of this plan into the job, and check what it expects: exit 3 if that has "
     "not held.",
     "CPPRUN_FAULTS may name the file too; docs/reference/faults.md"},
    {"seed", &ParsedOptions::seed, "N", "",
     "Draws what the fault plan leaves open. Default: the plan's own seed, else 0.",
     "the same seed, the same faults"},
    {"junit", &ParsedOptions::junit, "FILE", "",
     "Write there what became of the faults and expectations, as JUnit's XML."},
    {"hang-timeout", &ParsedOptions::hang_timeout, "auto|off|SECONDS", "",
     "How long workers may go without a sign of life before their stacks are collected and they "
     "are restarted. auto learns it, and acts only where it is sure. Default: auto.",
     "hangs are counted apart, up to --max-restarts too; docs/supervision.md"},
    {"debug-rank", &ParsedOptions::debug_rank, "N", "",
     "The worker with this global rank waits for a debugger before its program begins; nothing "
     "counts as a hang then.",
     "gdb -p attaches, SIGCONT lets it begin without one"},
    {"omp-threads", &ParsedOptions::omp_threads, "N|auto", "",
     "OMP_NUM_THREADS of each worker; auto shares this node's CPUs out evenly. Default: as "
     "torchrun, 1 where it is unset and there are several workers."},
    {"preload", &ParsedOptions::preload, "MODULE,...|auto|off", "",
     "Import these Python modules once per node, and fork the workers from that process, so that "
     "no "
     "start and no restart waits for them. auto: the installed packages that the script imports. "
     "Default: off.",
     "workers are spawned where a fork is not safe, with one line that says why; "
     "docs/how-to/preload.md"},
    {"allowed-host", &ParsedOptions::allowed_host, "NAME,...", "",
     "Further names by which browsers and other HTTP clients may ask the rendezvous port here. "
     "Always allowed: addresses, localhost, the names of this machine, and the endpoint's.",
     "other names in Host are answered with 421; docs/security.md"},
    {"secret-file",
     &ParsedOptions::secret_file,
     "FILE",
     "",
     "A secret that all agents of the job share, of 16 bytes or more: agents and coordinator then "
     "talk by TLS 1.3 alone. Default: the file that CPPRUN_SECRET_FILE names, else CPPRUN_SECRET.",
     "a file that others can read is refused; without effect on a job of one node; "
     "docs/security.md",
     {.has_variable = false}},
    {"tls-cert", &ParsedOptions::tls_cert, "FILE", "",
     "Instead of a secret: this node's certificate (PEM), by which agents and coordinator know "
     "each other; with --tls-key and --tls-ca.",
     "TLS 1.3; it needs both purposes, server and client"},
    {"tls-key", &ParsedOptions::tls_key, "FILE", "", "The private key of --tls-cert (PEM)."},
    {"tls-ca", &ParsedOptions::tls_ca, "FILE", "",
     "The CA whose certificates the members of the job have (PEM).",
     "whoever has a certificate of it is a member: use one of its own for these jobs"},
    {"cluster",
     &ParsedOptions::cluster,
     "WORD",
     "",
     "Which scheduler fills what is left open, such as --nnodes and --rdzv-endpoint: auto, slurm, "
     "kubernetes or none. none and --standalone: as torchrun. Default: auto.",
     "flags and PET_ variables have precedence; docs/how-to/slurm.md, docs/how-to/kubernetes.md",
     {.choices = "auto slurm kubernetes none"}},
    {"preempt-signal", &ParsedOptions::preempt_signal, "LIST|none", "",
     "Under Slurm: signals that ask the job to save and stop, like SIGTERM. Default: USR1,USR2.",
     "elsewhere without effect; with none they act as in torchrun"},
    {"slurm-secret",
     &ParsedOptions::slurm_secret,
     "WORD",
     "",
     "Under Slurm, for a job of several nodes without a secret or certificates: make a secret in "
     "the submit directory: always, never, or auto, which does so if that is on a shared file "
     "system. Default: auto.",
     "docs/security.md",
     {.choices = "auto always never"}},
    {"requeue",
     &ParsedOptions::requeue,
     "N",
     "",
     "Under Slurm: put the job back into the queue after a stop that can be resumed, up to N times "
     "(without N: always).",
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
    {"help", {}, "", "1.9", "Show this text.", "", {.letter = 'h', .has_variable = false}},
    {"version", {}, "", "", "Show the version.", "", {.has_variable = false}},
    {"print-completion",
     &ParsedOptions::print_completion,
     "SHELL",
     "2.15",
     "Show a completion script for bash, zsh or tcsh.",
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
  std::string name = "PET_";
  for (char c : underscored(row.name)) {
    name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

std::vector<std::string> choice_words(const OptionRow& row) {
  if (row.details.choices.empty()) return {};
  return text::split(row.details.choices, ' ');
}

}  // namespace cpprun
