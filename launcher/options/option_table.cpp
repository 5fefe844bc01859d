#include "launcher/options/option_table.hpp"

#include <algorithm>

#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr std::string_view kSize = "Nodes and workers";
constexpr std::string_view kMeet = "Where nodes meet";
constexpr std::string_view kProgram = "The program";
constexpr std::string_view kFailures = "Failures and stopping";
constexpr std::string_view kOutput = "Output and logs";
constexpr std::string_view kOwn = "Only in cpprun";
constexpr std::string_view kAsk = "Information";

using enum OptionKind;

constexpr OptionRow kTable[] = {
    // Nodes and workers
    {.name = "nnodes",
     .value = "N|MIN:MAX",
     .group = kSize,
     .since = "1.9",
     .help = "Number of nodes, or a range for an elastic job. Default: 1."},
    {.name = "nproc-per-node",
     .value = "N|WORD",
     .group = kSize,
     .since = "1.9",
     .help = "Workers on this node: a number, cpu, gpu, xpu or auto. Default: 1.",
     .note = "gpu counts NVIDIA devices without loading CUDA; xpu finds none; cpu is the number of "
             "CPUs online"},
    {.name = "node-rank",
     .kind = Int,
     .value = "N",
     .group = kSize,
     .since = "1.9",
     .help = "Rank of this node; needed by static jobs with several nodes. Default: 0.",
     .note = "with c10d it is a wish that counts before host names; torchrun ignores it there"},
    {.name = "role",
     .value = "NAME",
     .group = kSize,
     .since = "1.9",
     .help = "Name of this node's workers, for their ranks by role and for line prefixes. Default: "
             "default."},
    {.name = "virtual-local-rank",
     .kind = Flag,
     .group = kSize,
     .since = "2.10",
     .help = "Each worker sees LOCAL_RANK=0 and only its own device in CUDA_VISIBLE_DEVICES."},
    {.name = "numa-binding",
     .kind = Choice,
     .value = "WORD",
     .choices = "node socket exclusive core-complex",
     .has_variable = false,
     .group = kSize,
     .since = "2.9",
     .help = "Bind each worker to CPUs near its GPU: node, socket, exclusive or core-complex.",
     .note = "needs no numactl; a worker without a GPU: exit 1, as torchrun"},

    // Rendezvous
    {.name = "standalone",
     .kind = Flag,
     .group = kMeet,
     .since = "1.9",
     .help = "One node with a rendezvous of its own; overrides the other rendezvous options. Also "
             "what happens when neither endpoint nor master port is given for one node.",
     .note = "listens on loopback only; refused if --nnodes asks for two or more, for whom "
             "torchrun waits in vain"},
    {.name = "rdzv-backend",
     .value = "NAME",
     .group = kMeet,
     .since = "1.9",
     .help = "static, c10d, cpprun (another name of c10d), or etcd. Default: static.",
     .note = "c10d is cpprun's own rendezvous and does not mix with torchrun agents; etcd is asked "
             "by its v3 interface (docs/etcd.md), also as etcd-v2"},
    {.name = "rdzv-endpoint",
     .value = "HOST[:PORT]",
     .group = kMeet,
     .since = "1.9",
     .help = "Where the nodes meet. Default with c10d: localhost:29400. With etcd: its members, "
             "HOST[:PORT],..."},
    {.name = "rdzv-id",
     .value = "ID",
     .group = kMeet,
     .since = "1.9",
     .help = "Name of the job, the same on each node. Default: none, which an agent shares "
             "with other jobs: where that job is full, it ends with 1."},
    {.name = "rdzv-conf",
     .value = "K=V,...",
     .group = kMeet,
     .since = "1.9",
     .help = "Details of the rendezvous, such as join_timeout=600,last_call_timeout=30.",
     .note = "an unknown key is warned about; store_type=file is refused; keys below"},
    {.name = "local-addr",
     .value = "ADDRESS",
     .group = kMeet,
     .since = "2.0",
     .help = "Address by which other nodes reach this one. Default: found out."},
    {.name = "master-addr",
     .value = "HOST",
     .group = kMeet,
     .since = "1.9",
     .help = "Static jobs: address of the node with rank 0. Default: 127.0.0.1."},
    {.name = "master-port",
     .kind = Int,
     .value = "PORT",
     .group = kMeet,
     .since = "1.9",
     .help = "Static jobs: port on that node. Default: 29500 where one is needed.",
     .note = "unset by default as in torch 2.12; 0 on one node: any free port"},

    // The program
    {.name = "module",
     .letter = 'm',
     .kind = Flag,
     .group = kProgram,
     .since = "1.9",
     .help = "The script is the name of a Python module, as in python -m."},
    {.name = "no-python",
     .kind = Flag,
     .group = kProgram,
     .since = "1.9",
     .help = "Start the script itself, without Python.",
     .note = "not needed for an ELF file, or an executable #! script that is neither .py nor for "
             "Python"},
    {.name = "run-path",
     .kind = Flag,
     .group = kProgram,
     .since = "1.9",
     .help = "Run the script with Python whatever the two options above say.",
     .note = "python -u SCRIPT, as a launcher without Python has no interpreter to run it in"},
    {.name = "start-method",
     .kind = Choice,
     .value = "WORD",
     .choices = "spawn fork forkserver",
     .group = kProgram,
     .since = "1.9",
     .treatment = Treatment::NoEffect,
     .help = "spawn, fork or forkserver. Without effect: workers are always new programs.",
     .note = "the word is checked; only torchrun's in-process workers know the difference"},

    // Failures and stopping
    {.name = "max-restarts",
     .kind = Int,
     .value = "N",
     .group = kFailures,
     .since = "1.9",
     .help = "How often all workers are started again after a failure. Default: 0.",
     .note = "one budget for the whole job, not one for each node"},
    {.name = "monitor-interval",
     .kind = Float,
     .value = "SECONDS",
     .group = kFailures,
     .since = "1.9",
     .treatment = Treatment::NoEffect,
     .help = "Without effect: the end of a worker is an event, nothing is polled.",
     .note = "must still be above 0"},
    {.name = "signals-to-handle",
     .value = "LIST",
     .group = kFailures,
     .since = "2.9",
     .help = "Signals to catch and pass on. Default: SIGTERM,SIGINT,SIGHUP,SIGQUIT."},
    {.name = "shutdown-timeout",
     .kind = Int,
     .value = "SECONDS",
     .group = kFailures,
     .since = "2.12",
     .help = "Time between SIGTERM and SIGKILL when workers are stopped. Default: "
             "TORCH_ELASTIC_SHUTDOWN_TIMEOUT, else 30."},

    // Output and logs
    {.name = "log-dir",
     .value = "DIR",
     .group = kOutput,
     .since = "1.9",
     .help = "Folder for log files. Default: a temporary one, kept after a failure.",
     .note = "torchrun keeps the temporary one always; /dev/null: no files"},
    {.name = "redirects",
     .letter = 'r',
     .value = "SPEC",
     .group = kOutput,
     .since = "1.9",
     .help =
         "Write output to files: 0 none, 1 stdout, 2 stderr, 3 both; or by local rank: 0:3,1:1.",
     .note = "ranks above 9 work too"},
    {.name = "tee",
     .letter = 't',
     .value = "SPEC",
     .group = kOutput,
     .since = "1.9",
     .help = "The same, and show it too, each line with a prefix."},
    {.name = "local-ranks-filter",
     .value = "LIST",
     .group = kOutput,
     .since = "2.3",
     .help = "Only these local ranks reach the console, such as 0,2."},
    {.name = "duplicate-stdout-filters",
     .value = "LIST",
     .group = kOutput,
     .since = "2.10",
     .help =
         "Copy tee'd stdout lines that hold one of these texts into filtered_stdout.log; a double "
         "comma is a comma."},
    {.name = "duplicate-stderr-filters",
     .value = "LIST",
     .group = kOutput,
     .since = "2.10",
     .help = "The same for stderr and filtered_stderr.log."},
    {.name = "log-line-prefix-template",
     .value = "TEXT",
     .group = kOutput,
     .since = "2.15",
     .help = "Prefix of tee'd lines, with ${role_name} ${local_rank} ${rank} ${hostname}. Default: "
             "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE, else [${role_name}${local_rank}]:."},
    {.name = "logs-specs",
     .value = "NAME",
     .has_variable = false,
     .group = kOutput,
     .since = "2.3",
     .treatment = Treatment::Refused,
     .help = "Refused, except for the word default: it names a Python plug-in.",
     .note = "the plug-in is Python code inside torchrun's process; exit 1"},
    {.name = "event-log-handler",
     .value = "NAME",
     .group = kOutput,
     .since = "2.9",
     .help = "console prints torchrun's event records on stderr; null prints none. Default: null.",
     .note = "dynamic_rendezvous is silent, as under torchrun; other names: exit 1"},

    // cpprun's own options
    {.name = "worker-store",
     .kind = Choice,
     .value = "WORD",
     .choices = "rank0 agent",
     .group = kOwn,
     .help =
         "Who serves MASTER_PORT: rank0 (worker 0 itself) or agent (as torchrun). Default: rank0, "
         "but agent for static jobs with several nodes.",
     .note =
         "rank0 is refused for static jobs with several nodes, where the port is the agents' own"},
    {.name = "pass-local-rank",
     .kind = OptionalChoice,
     .value = "WORD",
     .choices = "underscore dash",
     .group = kOwn,
     .help = "For scripts of the old launcher: put --local_rank=N before the script's arguments; "
             "with =dash it is --local-rank=N.",
     .note = "PET_PASS_LOCAL_RANK takes underscore or dash"},
    {.name = "tune-malloc",
     .kind = Flag,
     .group = kOwn,
     .help = "Let glibc's malloc in the workers keep big blocks instead of giving them back at "
             "every step; what is set already stays.",
     .note = "MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_, MALLOC_TOP_PAD_"},

    {.name = "startup-failures",
     .kind = Int,
     .value = "N",
     .group = kOwn,
     .help = "End the job when a worker has failed within 10 s of its start in the same way in N "
             "rounds in a row, whatever --max-restarts allows. Default: 0, never.",
     .note = "job-wide, the first agent's value counts; the failure summary tells of such failures "
             "always"},
    {.name = "timing",
     .kind = Flag,
     .group = kOwn,
     .help = "Print on stderr where the time of the start and of each recovery went, phase by "
             "phase.",
     .note = "events.jsonl has the same"},
    {.name = "snapshot-dir",
     .value = "DIR",
     .group = kOwn,
     .help = "Folder in which the workers keep their snapshots (step-<n>): each round begins with "
             "the newest complete one.",
     .note = "may be shared by the nodes, or each node's own: what a node lacks it fetches from "
             "another"},
    {.name = "snapshot-replicas",
     .kind = Int,
     .value = "0|1",
     .group = kOwn,
     .help = "1: a neighbour node keeps a copy of what the workers keep in memory, so that a node "
             "that is replaced resumes from memory too. Default: 0.",
     .note = "with --snapshot-dir, each node's own; takes half of the memory for snapshots"},
    {.name = "faults",
     .value = "FILE",
     .group = kOwn,
     .help = "Inject the faults of this plan into the job, and check what it expects: exit 3 if "
             "that has not held.",
     .note = "CPPRUN_FAULTS may name the file too; docs/faults.md"},
    {.name = "seed",
     .kind = Int,
     .value = "N",
     .group = kOwn,
     .help = "Draws what the fault plan leaves open. Default: the plan's own seed, else 0.",
     .note = "the same seed, the same faults"},
    {.name = "junit",
     .value = "FILE",
     .group = kOwn,
     .help = "Write there what became of the faults and expectations, as JUnit's XML."},
    {.name = "hang-timeout",
     .value = "auto|off|SECONDS",
     .group = kOwn,
     .help = "How long workers may go without a sign of life before their stacks are collected and "
             "they are restarted. auto learns it, and acts only where it is sure. Default: auto.",
     .note = "hangs are counted apart, up to --max-restarts too; docs/supervision.md"},
    {.name = "debug-rank",
     .kind = Int,
     .value = "N",
     .group = kOwn,
     .help = "The worker with this global rank waits for a debugger before its program begins; "
             "nothing counts as a hang then.",
     .note = "gdb -p attaches, SIGCONT lets it begin without one"},
    {.name = "omp-threads",
     .value = "N|auto",
     .group = kOwn,
     .help = "OMP_NUM_THREADS of each worker; auto shares this node's CPUs out evenly. Default: as "
             "torchrun, 1 where it is unset and there are several workers."},

    // Information
    {.name = "help",
     .letter = 'h',
     .kind = Question,
     .has_variable = false,
     .group = kAsk,
     .since = "1.9",
     .help = "Show this text."},
    {.name = "version",
     .kind = Question,
     .has_variable = false,
     .group = kAsk,
     .help = "Show the version."},
    {.name = "print-completion",
     .kind = Choice,
     .value = "SHELL",
     .choices = "bash zsh tcsh",
     .has_variable = false,
     .group = kAsk,
     .since = "2.15",
     .help = "Show a completion script for bash, zsh or tcsh.",
     .note = "needs nothing installed"},
};

std::string replaced(std::string_view name, char from, char to) {
  std::string out(name);
  std::replace(out.begin(), out.end(), from, to);
  return out;
}

}  // namespace

bool OptionRow::takes_value() const {
  return kind != OptionKind::Flag && kind != OptionKind::Question &&
         kind != OptionKind::OptionalChoice;
}

std::span<const OptionRow> option_table() { return kTable; }

const OptionRow* find_option(std::string_view dashed_name) {
  for (const OptionRow& row : kTable) {
    if (row.name == dashed_name) return &row;
  }
  return nullptr;
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
  return row.choices.empty() ? std::vector<std::string>{} : text::split(row.choices, ' ');
}

}  // namespace cpprun
