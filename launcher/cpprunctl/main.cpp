// cpprunctl: the tool for operators. Parses the command line; each verb has its own file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/exit_code.hpp"
#include "common/limits/store.hpp"
#include "common/log/log.hpp"
#include "common/machine/signal_mask.hpp"
#include "common/machine/terminal_color.hpp"
#include "common/text.hpp"
#include "common/version.hpp"
#include "launcher/cpprunctl/chaos.hpp"
#include "launcher/cpprunctl/ctl_completion.hpp"
#include "launcher/cpprunctl/doctor/doctor.hpp"
#include "launcher/cpprunctl/events/events.hpp"
#include "launcher/cpprunctl/explain/explain.hpp"
#include "launcher/cpprunctl/install_as.hpp"
#include "launcher/cpprunctl/jobs/job_verbs.hpp"
#include "launcher/cpprunctl/rendezvous_client.hpp"
#include "launcher/cpprunctl/report/report.hpp"
#include "launcher/cpprunctl/serve.hpp"
#include "launcher/cpprunctl/slurm/slurm_script.hpp"
#include "launcher/cpprunctl/snapshot/snapshot.hpp"
#include "launcher/cpprunctl/text/usage_text.hpp"
#include "launcher/options/options.hpp"
#include "launcher/report/text_table.hpp"

namespace {

int fail(const cpprun::Error& error) {
  cpprun::log::failure(error.text);
  return cpprun::exit_code(error);
}

int code_of(const cpprun::Status& done) {
  return done.ok() ? cpprun::kSuccess : fail(done.error());
}

// CLI11's own validators print "not in range 0.000000 to 17976931..." for a wrong number.
CLI::Validator number(const char* wanted, bool (*is_right)(double)) {
  const auto check_number = [wanted, is_right](const std::string& text) {
    const std::optional<double> value = cpprun::text::parse_double(text);
    return value && is_right(*value) ? std::string() : "'" + text + "' is not a number " + wanted;
  };
  return {check_number, ""};
}
const CLI::Validator kAboveZero = number("above 0", [](double value) { return value > 0; });
const CLI::Validator kFromZero = number("from 0 on", [](double value) { return value >= 0; });
std::string bound_text(double bound) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.15g", bound);
  return text.data();
}
CLI::Validator within(double least, double most) {
  const auto check_number = [least, most](const std::string& text) {
    const std::optional<double> value = cpprun::text::parse_double(text);
    if (value && *value >= least && *value <= most) return std::string();
    return "'" + text + "' is not a number from " + bound_text(least) + " to " + bound_text(most);
  };
  return {check_number, ""};
}

// The verbs of `cpprunctl snapshot`. Parsing sets `chosen` to the verb's function.
using SnapshotVerb = cpprun::Status (*)(const cpprun::SnapshotCommandOptions&);
void add_snapshot_verbs(CLI::App& app, cpprun::SnapshotCommandOptions& options,
                        SnapshotVerb& chosen) {
  CLI::App* snapshot = app.add_subcommand("snapshot", "Look at snapshots, check, convert, remove");
  snapshot->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, const char* path, SnapshotVerb verb) {
    CLI::App* made = snapshot->add_subcommand(name, help);
    made->add_option("path", options.path, path)->required();
    made->callback([&chosen, verb] { chosen = verb; });
    return made;
  };
  constexpr const char* kAny = "a folder of snapshots, a snapshot, or a .pt file";
  CLI::App* ls = add("ls", "List snapshots, or what is in one", kAny, cpprun::snapshot_ls);
  CLI::App* show = add("show", "Show the contents of a snapshot", kAny, cpprun::snapshot_show);
  CLI::App* verify =
      add("verify", "Read everything and compare the checksums; exit 1 if any differs", kAny,
          cpprun::snapshot_verify);
  CLI::App* latest = add("latest", "Print the model file of the newest complete snapshot",
                         "a folder of snapshots", cpprun::snapshot_latest);
  latest->add_flag("--folder", options.wants_folder, "print the snapshot's folder instead");
  for (CLI::App* verb : {ls, show, verify, latest}) {
    verb->add_flag("--json", options.is_json, "print JSON");
  }
  CLI::App* convert = add("convert", "Write a snapshot in another form", "a snapshot or a .pt file",
                          cpprun::snapshot_convert);
  convert
      ->add_option("to", options.to,
                   "x.pt: one file; x.safetensors: the model's tensors; else a folder of "
                   "snapshots. A file that is there stays as <to>.prev")
      ->required();
  convert->add_option("--strip-prefix", options.strip_prefix,
                      "take this from the front of names, where all have it");
  convert
      ->add_option("--step", options.step, "optimizer steps done, for a file without this number")
      ->check(kFromZero);
  add("mark-bad", "Set a snapshot and all later ones aside, so that nothing resumes from them",
      "a snapshot", cpprun::snapshot_mark_bad);
  CLI::App* prune = add("prune", "Remove old snapshots, and what dead writers left",
                        "a folder of snapshots", cpprun::snapshot_prune);
  prune->add_option("--keep", options.keep, "how many of the newest stay")
      ->required()
      ->check(kAboveZero);
  prune->add_option("--keep-every", options.keep_every, "those of each so many steps stay as well")
      ->check(kAboveZero);
}

CLI::App* add_events_verb(CLI::App& app, cpprun::EventsOptions& options) {
  CLI::App* verb = app.add_subcommand("events", "Show what happened to a job on this machine");
  verb->add_option("job", options.path,
                   "its run id or a unique beginning, its run folder or --log-dir; else the newest "
                   "job that runs here");
  verb->add_flag("-f,--follow", options.follows, "continue until the run has finished");
  verb->add_flag("-v,--verbose", options.is_verbose, "print how long each start took, too");
  verb->add_flag("--json", options.is_json, "print JSON, one event a line");
  return verb;
}

CLI::App* add_completion(CLI::App& app, std::string& shell) {
  CLI::App* verb = app.add_subcommand("completion", "Print a script that completes words");
  verb->add_option("shell", shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return verb;
}

CLI::App* add_install_as(CLI::App& app, cpprun::InstallOptions& options) {
  CLI::App* verb = app.add_subcommand(
      "install-as", "Make a link to cpprun by the name torchrun, with torchrun's defaults");
  verb->add_option("name", options.name, "torchrun")
      ->required()
      ->check(CLI::IsMember({"torchrun"}));
  verb->add_option("--dir", options.dir, "where; default: the folder of cpprunctl");
  verb->add_flag("--undo", options.is_undo, "remove the link");
  return verb;
}

CLI::App* add_report(CLI::App& app, cpprun::ReportOptions& options) {
  CLI::App* verb = app.add_subcommand(
      "report", "Write one HTML file about a job: failure, events, ends of logs, this machine");
  verb->add_option(
      "job", options.job,
      "its run id or a unique beginning, its run folder or --log-dir; else the newest");
  verb->add_option("-o,--output", options.output, "default: cpprun-report-JOB.html in this folder");
  verb->add_option("-n,--lines", options.lines, "how many lines of each log file")
      ->check(kFromZero)
      ->capture_default_str();
  return verb;
}

CLI::App* add_doctor(CLI::App& app, cpprun::DoctorOptions& options) {
  CLI::App* doctor = app.add_subcommand(
      "doctor", "Look for what would make a job fail or crawl on this node, and name the cure");
  doctor->add_option("--nproc-per-node", options.nproc, "how many workers are meant to run here")
      ->check(within(1, 1 << 16))
      ->capture_default_str();
  CLI::Option* endpoint = doctor->add_option("--endpoint,--rdzv-endpoint", options.endpoint,
                                             "HOST[:PORT] as for cpprun's --rdzv-endpoint");
  doctor
      ->add_option("--nnodes", options.nodes.count,
                   "look from node to node: run the same command on so many nodes at once; they "
                   "meet at the endpoint")
      ->check(within(2, 100'000))
      ->needs(endpoint);
  doctor->add_option("--wait", options.nodes.wait_s, "seconds to wait for the other nodes")
      ->check(within(1, 3600))
      ->capture_default_str();
  doctor
      ->add_option("--port", options.nodes.port,
                   "where this node answers the others; else a free port")
      ->check(within(1, 65535));
  doctor
      ->add_option("--min-gbps", options.nodes.least_gbps,
                   "a slower way between nodes is a finding; else only one that is far off")
      ->check(kAboveZero);
  doctor->add_option("--max-latency-ms", options.nodes.most_latency_ms, "likewise")
      ->check(kAboveZero);
  doctor->add_option("--snapshot-dir", options.snapshot_dir, "where snapshots are to be written");
  doctor->add_flag("-v,--verbose", options.is_verbose, "print the checks that are ok too");
  doctor->add_flag("--json", options.is_json, "print JSON; all checks");
  return doctor;
}

void add_tls_options(CLI::App* verb, cpprun::TlsOptions& options) {
  verb->add_option("--secret-file", options.secret_file,
                   "the secret of the job; default: CPPRUN_SECRET_FILE, else CPPRUN_SECRET");
  verb->add_option("--tls-cert", options.cert,
                   "instead of a secret: a certificate, with --tls-key and --tls-ca");
  verb->add_option("--tls-key", options.key, "its private key");
  verb->add_option("--tls-ca", options.ca, "the CA of the job's members");
}

// The verbs for running jobs. Parsing sets `chosen` to the verb's function.
using JobVerb = cpprun::Status (*)(const cpprun::JobCommandOptions&);

class JobVerbs {
 public:
  JobVerbs(CLI::App& app, cpprun::JobCommandOptions& options, JobVerb& chosen)
      : app_(app), options_(options), chosen_(chosen) {}

  void add_lookers() {
    CLI::App* ps = add("ps", "The jobs of this machine", cpprun::ps);
    ps->add_flag("-a,--all", options_.is_all,
                 "finished jobs too, if their run folder was kept in the temporary folder");
    ps->add_option("--log-dir", options_.log_dir,
                   "finished jobs too, with the run folders in this folder");
    CLI::App* status = add("status", "One job: its nodes, and the workers here", cpprun::status);
    add_job(status);
    status->add_option("--rdzv-endpoint", options_.endpoint,
                       "HOST:PORT of a job elsewhere; only its nodes are known there");
    CLI::App* nodes =
        add("nodes", "The hosts of a job: their faults, and which are excluded", cpprun::nodes);
    add_job(nodes);
    nodes->add_option("--rdzv-endpoint", options_.endpoint, "HOST:PORT of a job elsewhere");
    CLI::App* top = add("top", "The status of a job, live, until it ends", cpprun::top);
    add_job(top);
    top->add_option("-d,--delay", options_.every_s, "seconds between two looks")
        ->check(within(0.1, 3600))
        ->capture_default_str();
    top->add_option("--sort", options_.sort, "the order of the workers: rank, step, time, memory")
        ->check(CLI::IsMember({"rank", "step", "time", "memory"}))
        ->capture_default_str();
    top->add_option("-n,--count", options_.frames, "how many looks; 0: until the job ends")
        ->check(kFromZero);
    CLI::App* pid = add("pid", "The pid of a worker here", cpprun::pid);
    pid->add_option("rank,--rank", options_.rank, "its global rank")->required();
    add_job_option(pid);
    for (CLI::App* verb : {ps, status, nodes, pid}) {
      verb->add_flag("--json", options_.is_json, "print JSON");
    }
    add_logs();
  }

  void add_logs() {
    CLI::App* logs =
        add("logs", "The log files of workers here, or of all nodes of a job", cpprun::logs);
    logs->add_option("--rank", options_.rank, "only this global rank");
    logs->add_option("--node", options_.node, "only this node's, where several run here");
    CLI::Option* lines =
        logs->add_option("-n,--lines", options_.lines,
                         "how many lines of each file; with --all-nodes without it: all");
    lines->check(kFromZero)->capture_default_str();
    lines->each([this](const std::string&) { options_.has_lines = true; });
    CLI::Option* since = logs->add_option(
        "--since", options_.since,
        "from this time on, earlier rounds included: 30s, 5m, 2h, 1d ago, 06:14, or "
        "2026-11-22T06:14:13");
    logs->add_flag("-f,--follow", options_.follows, "continue until the job ends");
    CLI::Option* all_nodes =
        logs->add_flag("--all-nodes", options_.is_all_nodes,
                       "of all nodes, earlier rounds included; needs CPPRUN_ADMIN_TOKEN");
    since->excludes(all_nodes);
    logs->add_option("--endpoint", options_.endpoint,
                     "HOST:PORT of the job's rendezvous, instead of an agent here")
        ->needs(all_nodes);
    add_tls_options(logs, options_.tls);
    add_job(logs);
  }

  void add_goodput() {
    CLI::App* made =
        add("goodput", "How a job has used its time: training, and what was lost", cpprun::goodput);
    made->add_option("job", options_.job,
                     "its run id, run folder or --log-dir; else the newest job that runs here");
    made->add_flag("--json", options_.is_json, "print JSON");
  }

  void add_stacks() {
    CLI::App* stacks = add("stacks", "What workers here are doing: their stacks", cpprun::stacks);
    stacks->add_option("--rank", options_.rank, "only of this global rank");
    stacks->add_option("--node", options_.node, "only of this node, where several run here");
    stacks->add_flag("--json", options_.is_json, "print JSON");
    add_job(stacks);
  }

  void add_changers() {
    CLI::App* signal = add("signal", "Send a signal to workers here", cpprun::send_signal);
    signal->add_option("signal", options_.signal, "USR1, SIGUSR1, 10 ...")->required();
    signal->add_option("--rank", options_.rank, "only to this global rank");
    add_job_option(signal);
    CLI::App* restart = add("restart", "Start all workers of a job anew", cpprun::restart);
    add_job(restart);
    CLI::App* drain = add("drain", "Let a job save, and continue without one node", cpprun::drain);
    drain->add_option("node", options_.node, "its name, or its group rank")->required();
    add_job_option(drain);
    CLI::App* scale = add("scale", "Let an elastic job run on more or fewer nodes", cpprun::scale);
    scale->add_option("nodes", options_.nodes, "how many, within its --nnodes=MIN:MAX")->required();
    add_job_option(scale);
    CLI::App* stop = add("stop", "Stop all nodes of a job", cpprun::stop);
    stop->add_flag("--resumable", options_.is_resumable,
                   "let workers save first; the same command then continues (as SIGTERM does)");
    CLI::Option* here =
        stop->add_flag("--here", options_.is_here, "only the nodes that are on this machine");
    add_job(stop);
    CLI::App* exclude = add("exclude", "Leave a host out of all further rounds", cpprun::exclude);
    exclude->add_option("host", options_.node, "its name, or the group rank of its agent")
        ->required();
    exclude->add_option("--reason", options_.reason, "why, for people");
    add_job_option(exclude);
    CLI::App* readmit = add("readmit", "Take an excluded host in again", cpprun::readmit);
    readmit->add_option("host", options_.node, "its name")->required();
    add_job_option(readmit);
    for (CLI::App* verb : {restart, drain, scale, exclude, readmit, stop}) {
      verb->add_option("--endpoint", options_.endpoint,
                       "HOST:PORT of a job elsewhere; needs CPPRUN_ADMIN_TOKEN, as its coordinator "
                       "was started with");
      add_tls_options(verb, options_.tls);
    }
    here->excludes("--endpoint");
  }

 private:
  CLI::App* add(const char* name, const char* help, JobVerb verb) {
    CLI::App* made = app_.add_subcommand(name, help);
    made->callback([this, verb] { chosen_ = verb; });
    return made;
  }
  void add_job(CLI::App* verb) {
    verb->add_option("job", options_.job,
                     "its run id (--rdzv-id) or a unique beginning; needed where several run");
  }
  void add_job_option(CLI::App* verb) {
    verb->add_option("--job", options_.job,
                     "run id of the job, or a unique beginning; needed where several run");
  }

  CLI::App& app_;
  cpprun::JobCommandOptions& options_;
  JobVerb& chosen_;
};

// All verbs and their options, for completion.
std::vector<cpprun::ctl::VerbHelp> words_of(const CLI::App& app, const std::string& before = "") {
  std::vector<cpprun::ctl::VerbHelp> all;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    cpprun::ctl::VerbHelp words{before + verb->get_name(), verb->get_description(), {}};
    for (const CLI::Option* option : verb->get_options()) {
      for (const std::string& name : option->get_lnames()) words.options.push_back("--" + name);
      for (const std::string& name : option->get_snames()) words.options.push_back("-" + name);
    }
    const auto below = words_of(*verb, words.name + " ");
    if (below.empty()) all.push_back(std::move(words));
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

void add_serve(CLI::App& app, cpprun::ServeOptions& serve) {
  CLI::App* serve_verb = app.add_subcommand(
      "serve", "Serve torch's TCPStore, cpprun's control protocol and HTTP on one port");
  serve_verb->add_option("--listen", serve.listen, "HOST:PORT; port 0 takes a free one")
      ->required();
  serve_verb
      ->add_option("--store-value-limit-mb", serve.store_value_limit_mb,
                   "largest value of the store, in MiB")
      ->check(within(1, 1 << 20))
      ->capture_default_str();
  serve_verb
      ->add_option("--store-memory-mb", serve.store_memory_mb,
                   "memory of all stores and their clients' buffers, in MiB; default: a quarter of "
                   "the machine's memory or of the cgroup's limit")
      ->check(within(1, cpprun::limits::kStoreMemoryMax >> 20));
  serve_verb
      ->add_option("--allowed-host", serve.allowed_hosts,
                   "a further name by which HTTP clients may ask; may be repeated")
      ->option_text("NAME ...")
      ->expected(1)
      ->take_all();
  add_tls_options(serve_verb, serve.tls);
}

CLI::App* add_rendezvous_client(CLI::App& app, cpprun::RendezvousClientCommand& command) {
  CLI::App* verb = app.add_subcommand(
      "rendezvous-client",
      "Take part in a job for another launcher, by JSON lines; torchrun's plug-in starts it");
  verb->add_option("--rdzv-endpoint", command.endpoint, "HOST[:PORT] of the coordinator")
      ->required();
  verb->add_option("--rdzv-id", command.run_id, "name of the job")->capture_default_str();
  verb->add_option("--nnodes", command.nnodes, "N or MIN:MAX")->capture_default_str();
  verb->add_option("--local-addr", command.local_addr,
                   "address at which other nodes reach this one; default: found");
  constexpr double kLongest = 1e9;
  const std::pair<const char*, double*> timeouts[] = {
      {"--join-timeout", &command.join_timeout},
      {"--connect-timeout", &command.connect_timeout},
      {"--last-call-timeout", &command.last_call_timeout}};
  for (const auto& [name, value] : timeouts) {
    verb->add_option(name, *value, "seconds")->check(within(0, kLongest));
  }
  add_tls_options(verb, command.tls);
  return verb;
}

int check_node(const cpprun::DoctorOptions& options) {
  const cpprun::Result<bool> is_well = cpprun::run_doctor(options);
  if (!is_well) return fail(is_well.error());
  return *is_well ? cpprun::kSuccess : cpprun::kFailure;
}

int take_part(const cpprun::RendezvousClientCommand& command) {
  const cpprun::Result<int> code = cpprun::rendezvous_client(command);
  return code ? *code : fail(code.error());
}

CLI::App* add_chaos(CLI::App& app, cpprun::ChaosOptions& options) {
  CLI::App* verb =
      app.add_subcommand("chaos", "Run a fault plan with many seeds; exit 3 if one has not held");
  verb->add_option("plan", options.plan, "the fault plan, a JSON file")->required();
  verb->add_option("command", options.command,
                   "after --: cpprun and its words; {seed} in them becomes the seed")
      ->required();
  verb->add_option("--seeds", options.seeds, "how many")
      ->check(within(1, 1'000'000))
      ->capture_default_str();
  verb->add_option("--first", options.first, "the first of them")
      ->check(within(0, static_cast<double>(int64_t{1} << 40)))
      ->capture_default_str();
  return verb;
}

// `cpprunctl slurm script`: sbatch's options that differ from job to job, and the program.
CLI::App* add_slurm_script(CLI::App& app, cpprun::SlurmScriptOptions& options) {
  CLI::App* slurm = app.add_subcommand("slurm", "Write a batch file for Slurm");
  slurm->require_subcommand(1);
  CLI::App* script = slurm->add_subcommand(
      "script", "Print a batch file that survives preemption, the time limit and lost nodes");
  const std::pair<const char*, const char*> values[] = {{"job-name", "the job's name"},
                                                        {"nodes", "how many nodes"},
                                                        {"gpus-per-node", "GPUs of each node"},
                                                        {"cpus-per-task", "CPUs of each node"},
                                                        {"time", "the time limit"},
                                                        {"partition", "the partition"},
                                                        {"account", "the account"},
                                                        {"output", "the file for its output"}};
  options.sbatch.reserve(std::size(values));
  for (const auto& [name, help] : values) {
    options.sbatch.emplace_back(name, "");
    script->add_option("--" + std::string(name), options.sbatch.back().second, help);
  }
  script->add_option("program", options.program,
                     "the script and its arguments; else those of the call of sbatch");
  script->positionals_at_end();
  return script;
}

int print_slurm_script(const cpprun::SlurmScriptOptions& options) {
  const cpprun::Result<std::string> script = cpprun::slurm_script(options);
  if (!script) return fail(script.error());
  std::fputs(script->c_str(), stdout);
  return std::fflush(stdout) == 0 ? cpprun::kSuccess : cpprun::kFailure;
}

int run_chaos(const cpprun::ChaosOptions& options) {
  const cpprun::Result<cpprun::ChaosResult> result = cpprun::chaos(options);
  if (!result) return fail(result.error());
  if (result->signal != 0) return cpprun::kSignalBase + result->signal;
  return result->is_held ? cpprun::kSuccess : cpprun::kExpectationsFailed;
}

// Shows readable placeholders of values: "N" where CLI11 has "INT:NONNEGATIVE=10".
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_name();
    if (option->get_type_size() == 0 || type.empty()) return "";
    const bool is_number = type.starts_with("INT") || type.starts_with("UINT");
    std::string text = is_number ? " N" : type.starts_with("FLOAT") ? " NUMBER" : " TEXT";
    const std::string without = option->get_default_str();
    if (!without.empty()) text += " (" + without + ")";
    return text;
  }
};

// Sets the groups of verbs in the help text.
void group_verbs(CLI::App& app) {
  const std::pair<const char*, std::vector<const char*>> groups[] = {
      {"Look at running jobs",
       {"ps", "status", "nodes", "top", "pid", "logs", "stacks", "events", "goodput"}},
      {"Change a running job",
       {"signal", "restart", "drain", "scale", "exclude", "readmit", "stop"}},
      {"Before a job and after it", {"doctor", "explain", "slurm", "report", "snapshot", "chaos"}},
      {"Servers and shells", {"serve", "rendezvous-client", "install-as", "completion"}}};
  for (const auto& [group, verbs] : groups) {
    for (const char* verb : verbs) app.get_subcommand(verb)->group(group);
  }
  app.footer(
      "cpprunctl VERB --help describes one verb. cpprunctl finds the running jobs of this machine "
      "without an address.");
}

// Suggests a command for a misspelt one; CLI11 only reports that a command is missing.
cpprun::Status check_verb(const CLI::App& app, const std::string& word) {
  if (word.starts_with('-')) return {};
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) names.push_back(verb->get_name());
  if (std::ranges::find(names, word) != names.end()) return {};
  const std::string near = cpprun::ctl::nearest_command(word, names);
  const std::string hint = near.empty() ? "the commands are " + cpprun::text::join(names, ", ")
                                        : "did you mean '" + near + "'?";
  return cpprun::Error{cpprun::ErrorKind::Usage, "unknown command '" + word + "'\nhint: " + hint};
}

// The command, and the one behind it, as in `snapshot ls`.
cpprun::Status check_verbs(const CLI::App& app, const std::vector<std::string>& words) {
  if (cpprun::Status verb = check_verb(app, words[0]); !verb) return verb;
  if (words[0].starts_with('-') || words.size() == 1) return {};
  const CLI::App* group = app.get_subcommand(words[0]);
  return group->get_subcommands({}).empty() ? cpprun::Status{} : check_verb(*group, words[1]);
}

// `help VERB` is `VERB --help`.
std::vector<std::string> without_help_word(std::vector<std::string> words) {
  if (words[0] != "help") return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

// The words of the command whose parsing has failed, and its options.
std::pair<std::string, std::vector<std::string>> parsed_command(const CLI::App& app) {
  const CLI::App* at = &app;
  std::vector<std::string> words;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    words.push_back(at->get_name());
  }
  std::vector<std::string> options;
  for (const CLI::Option* option : at->get_options()) {
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  }
  return {cpprun::text::join(words, " "), options};
}

// Returns an exit code if the program is to end: after help, or because the command line is wrong.
std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  if (argc < 2) {
    std::fputs(app.help().c_str(), stderr);
    return cpprun::kUsageError;
  }
  const std::vector<std::string> words = without_help_word({argv + 1, argv + argc});
  if (cpprun::Status verb = check_verbs(app, words); !verb) return fail(verb.error());
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 reads from the back
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      const auto& [command, options] = parsed_command(app);
      cpprun::log::failure(cpprun::ctl::usage_text(error.what(), command, options));
      return cpprun::kUsageError;
    }
    return app.exit(error) == 0 ? cpprun::kSuccess : cpprun::kUsageError;
  }
  return std::nullopt;
}

// --color, before the command or behind it. Not for commands whose words are another program's.
void add_color(CLI::App& app, std::string& color) {
  app.add_option("--color", color, "colours: auto (on terminals, without NO_COLOR), always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  for (CLI::App* verb : app.get_subcommands({})) {
    const std::string& name = verb->get_name();
    if (name != "explain" && name != "chaos" && name != "slurm") verb->fallthrough();
  }
}

void use_color(const std::string& word) {
  cpprun::ctl::set_color(cpprun::color_mode(word));
  cpprun::log::set_color(cpprun::color_mode(word));
}

}  // namespace

int main(int argc, char** argv) {
  cpprun::unblock_signals();
  CLI::App app("Operate cpprun jobs and servers.", "cpprunctl");
  app.require_subcommand(1);
  app.set_version_flag("--version", "cpprunctl " + cpprun::version());
  const auto formatter = std::make_shared<HelpFormatter>();
  formatter->label("SUBCOMMAND", "VERB");
  app.formatter(formatter);
  cpprun::JobCommandOptions job;
  JobVerb job_verb = nullptr;
  JobVerbs job_verbs(app, job, job_verb);
  job_verbs.add_lookers();
  job_verbs.add_stacks();
  job_verbs.add_goodput();
  job_verbs.add_changers();
  cpprun::EventsOptions events;
  const CLI::App* events_verb = add_events_verb(app, events);
  cpprun::DoctorOptions doctor;
  const CLI::App* doctor_verb = add_doctor(app, doctor);
  CLI::App* explain = app.add_subcommand(
      "explain", "What a command line of cpprun would do, and where that differs from torchrun");
  explain->footer("Behind it stands a command line: cpprunctl explain torchrun train.py");
  explain->prefix_command();
  cpprun::SnapshotCommandOptions snapshot;
  SnapshotVerb snapshot_verb = nullptr;
  add_snapshot_verbs(app, snapshot, snapshot_verb);
  cpprun::SlurmScriptOptions slurm;
  const CLI::App* slurm_verb = add_slurm_script(app, slurm);
  cpprun::ChaosOptions chaos;
  const CLI::App* chaos_verb = add_chaos(app, chaos);
  cpprun::ServeOptions serve{.listen = "",
                             .store_value_limit_mb = cpprun::limits::kStoreValueBytes >> 20};
  add_serve(app, serve);
  cpprun::RendezvousClientCommand rendezvous;
  const CLI::App* rendezvous_verb = add_rendezvous_client(app, rendezvous);
  cpprun::ReportOptions report;
  const CLI::App* report_verb = add_report(app, report);
  cpprun::InstallOptions install;
  const CLI::App* install_verb = add_install_as(app, install);
  std::string shell;
  const CLI::App* completion = add_completion(app, shell);
  group_verbs(app);
  std::string color = "auto";
  add_color(app, color);
  if (const std::optional<int> code = parse(app, argc, argv)) return *code;
  use_color(color);
  if (const char* level = std::getenv("LOGLEVEL")) cpprun::log::set_level(level);
  if (events_verb->parsed()) return code_of(cpprun::show_events(events));
  if (install_verb->parsed()) return code_of(cpprun::install_as(install));
  if (report_verb->parsed()) return code_of(cpprun::write_report(report));
  if (doctor_verb->parsed()) return check_node(doctor);
  if (rendezvous_verb->parsed()) return take_part(rendezvous);
  if (explain->parsed()) {
    const cpprun::Result<std::string> text = cpprun::explain(explain->remaining());
    if (!text) return fail(text.error());
    cpprun::ctl::print_hanging(*text);
    return cpprun::kSuccess;
  }
  if (completion->parsed()) {
    cpprun::ctl::print_unchanged(cpprun::ctl::completion_script(shell, words_of(app)));
    return cpprun::kSuccess;
  }
  if (slurm_verb->parsed()) return print_slurm_script(slurm);
  if (chaos_verb->parsed()) return run_chaos(chaos);
  cpprun::Status done = job_verb != nullptr        ? job_verb(job)
                        : snapshot_verb != nullptr ? snapshot_verb(snapshot)
                                                   : cpprun::serve(serve);
  return code_of(done);
}
