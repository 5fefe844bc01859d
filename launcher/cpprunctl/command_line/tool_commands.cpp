#include "launcher/cpprunctl/command_line/tool_commands.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "common/exit_code.hpp"
#include "launcher/cpprunctl/chaos.hpp"
#include "launcher/cpprunctl/command_line/validators.hpp"
#include "launcher/cpprunctl/doctor/doctor.hpp"
#include "launcher/cpprunctl/explain/explain.hpp"
#include "launcher/cpprunctl/install_as.hpp"
#include "launcher/cpprunctl/report/report.hpp"
#include "launcher/cpprunctl/slurm/slurm_script.hpp"
#include "launcher/report/text_table.hpp"

namespace cpprun::ctl {
namespace {

void add_doctor_nodes(CLI::App* doctor, DoctorNodesOptions& nodes, CLI::Option* endpoint) {
  doctor
      ->add_option("--nnodes", nodes.count,
                   "check the connections between so many nodes: run the same command on all of "
                   "them at once; they meet at the endpoint")
      ->check(within(2, 100'000))
      ->needs(endpoint);
  doctor->add_option("--wait", nodes.wait_s, "seconds to wait for the other nodes")
      ->check(within(1, 3600))
      ->capture_default_str();
  doctor->add_option("--port", nodes.port, "where this node answers the others; else a free port")
      ->check(within(1, 65535));
  doctor
      ->add_option("--min-gbps", nodes.least_gbps,
                   "a slower connection between nodes is a finding; else only an outlier")
      ->check(above_zero());
  doctor->add_option("--max-latency-ms", nodes.most_latency_ms, "likewise")->check(above_zero());
}

void add_doctor(CLI::App& app, RunCommand& run) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App* doctor = app.add_subcommand(
      "doctor", "Check this node for what makes jobs fail or slow, and name the cure");
  doctor->add_option("--nproc-per-node", options->nproc, "how many workers are meant to run here")
      ->check(within(1, 1 << 16))
      ->capture_default_str();
  CLI::Option* endpoint = doctor->add_option("--endpoint,--rdzv-endpoint", options->endpoint,
                                             "HOST[:PORT] as for cpprun's --rdzv-endpoint");
  add_doctor_nodes(doctor, options->nodes, endpoint);
  doctor->add_option("--snapshot-dir", options->snapshot_dir, "where snapshots are to be written");
  doctor->add_flag("-v,--verbose", options->is_verbose, "print the checks that are ok too");
  doctor->add_flag("--json", options->is_json, "print JSON; all checks");
  doctor->callback(
      [&run, options] { run = [options] { return exit_code_of(run_doctor(*options)); }; });
}

void add_explain(CLI::App& app, RunCommand& run) {
  CLI::App* explain = app.add_subcommand(
      "explain", "Show what a command line of cpprun does, and where that differs from torchrun");
  explain->footer("A command line follows, as in: cpprunctl explain torchrun train.py");
  explain->prefix_command();
  explain->callback([&run, explain] {
    run = [explain] {
      const Result<std::string> text = cpprun::explain(explain->remaining());
      if (!text) return exit_code_of(Status(text.error()));
      print_hanging(*text);
      return kSuccess;
    };
  });
}

int print_slurm_script(const SlurmScriptOptions& options) {
  const Result<std::string> script = slurm_script(options);
  if (!script) return exit_code_of(Status(script.error()));
  std::fputs(script->c_str(), stdout);
  return std::fflush(stdout) == 0 ? kSuccess : kFailure;
}

// `cpprunctl slurm script`: sbatch's options that differ from job to job, and the program.
void add_slurm_script(CLI::App& app, RunCommand& run) {
  const auto options = std::make_shared<SlurmScriptOptions>();
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
  options->sbatch.reserve(std::size(values));  // CLI11 keeps references to the elements
  for (const auto& [name, help] : values) {
    options->sbatch.emplace_back(name, "");
    script->add_option("--" + std::string(name), options->sbatch.back().second, help);
  }
  script->add_option("program", options->program,
                     "the script and its arguments; else those of the call of sbatch");
  script->positionals_at_end();
  script->callback([&run, options] { run = [options] { return print_slurm_script(*options); }; });
}

void add_report(CLI::App& app, RunCommand& run) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* report = app.add_subcommand(
      "report", "Write one HTML file about a job: failure, events, ends of logs, this machine");
  report->add_option(
      "job", options->job,
      "its run id or a unique beginning, its run folder or --log-dir; else the newest");
  report->add_option("-o,--output", options->output,
                     "default: cpprun-report-JOB.html in this folder");
  report->add_option("-n,--lines", options->lines, "how many lines of each log file")
      ->check(from_zero())
      ->capture_default_str();
  report->callback(
      [&run, options] { run = [options] { return exit_code_of(write_report(*options)); }; });
}

int run_chaos(const ChaosOptions& options) {
  const Result<ChaosResult> result = chaos(options);
  if (!result) return exit_code_of(Status(result.error()));
  if (result->signal != 0) return kSignalBase + result->signal;
  return result->is_held ? kSuccess : kExpectationsFailed;
}

void add_chaos(CLI::App& app, RunCommand& run) {
  const auto options = std::make_shared<ChaosOptions>();
  CLI::App* chaos =
      app.add_subcommand("chaos", "Run a fault plan with many seeds; exit 3 if one has not held");
  chaos->add_option("plan", options->plan, "the fault plan, a JSON file")->required();
  chaos
      ->add_option("command", options->command,
                   "after --: cpprun and its arguments; {seed} in them becomes the seed")
      ->required();
  chaos->add_option("--seeds", options->seeds, "how many")
      ->check(within(1, 1'000'000))
      ->capture_default_str();
  chaos->add_option("--first", options->first, "the first of them")
      ->check(within(0, static_cast<double>(int64_t{1} << 40)))
      ->capture_default_str();
  chaos->callback([&run, options] { run = [options] { return run_chaos(*options); }; });
}

void add_install_as(CLI::App& app, RunCommand& run) {
  const auto options = std::make_shared<InstallOptions>();
  CLI::App* install = app.add_subcommand(
      "install-as", "Make a link to cpprun by the name torchrun, with torchrun's defaults");
  install->add_option("name", options->name, "torchrun")
      ->required()
      ->check(CLI::IsMember({"torchrun"}));
  install->add_option("--dir", options->dir, "where; default: the folder of cpprunctl");
  install->add_flag("--undo", options->is_undo, "remove the link");
  install->callback(
      [&run, options] { run = [options] { return exit_code_of(install_as(*options)); }; });
}

}  // namespace

void add_tool_commands(CLI::App& app, RunCommand& run) {
  add_doctor(app, run);
  add_explain(app, run);
  add_slurm_script(app, run);
  add_chaos(app, run);
  add_report(app, run);
  add_install_as(app, run);
}

}  // namespace cpprun::ctl
