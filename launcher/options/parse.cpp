// The only translation unit that includes CLI11. CLI11 does not read the command line, because it
// differs from argparse: it does not accept unique prefixes, takes "[a]" for a list and 010 for
// eight. The tokenizer does that.
#include "launcher/options/parse.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <set>

#include "common/check.hpp"
#include "common/text.hpp"
#include "launcher/options/option_table.hpp"

namespace cpprun {
namespace {

constexpr size_t kWidth = 80;
constexpr std::string_view kHelpIndent = "        ";

std::string cli_names(const OptionRow& row) {
  std::string names;
  if (row.letter != '\0') names = std::string("-") + row.letter + ",";
  names += "--" + std::string(row.name);
  std::string other = underscored(row.name);
  if (other != row.name) names += ",--" + other;
  return names;
}

// Wraps at blanks; a word longer than the line stays whole.
std::string wrapped(std::string_view text) {
  std::string out;
  std::string line;
  for (const std::string& token : text::split(text, ' ')) {
    if (!line.empty() && kHelpIndent.size() + line.size() + 1 + token.size() > kWidth) {
      out += std::string(kHelpIndent) + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + token;
  }
  return out + std::string(kHelpIndent) + line + "\n";
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "usage: cpprun [options] script [arguments of the script]\n\n"
           "Starts N copies of a training program on this node, watches them, and starts\n"
           "them all again when one fails. Options may be cut short (--nproc=2) and have a\n"
           "variable that stands in for them (PET_NPROC_PER_NODE). What follows the script\n"
           "is the script's own; ${local_rank} in it is the number of the copy.\n\n"
           "  cpprun --nproc-per-node=2 train.py --epochs 3\n"
           "  cpprun --nproc-per-node=gpu --max-restarts=3 train.py\n"
           "  cpprun --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d \\\n"
           "         --rdzv-endpoint=node0:29400 train.py       (the same on each node)\n\n"
           "cpprunctl shows what runs, and why something does not.\n";
  }

  std::string make_group(std::string group, bool,
                         std::vector<const CLI::Option*> options) const override {
    std::string out = (group == option_table().front().group ? "\n" : "") + group + ":\n";
    for (const CLI::Option* option : options) out += make_option(option, false);
    return out;
  }

  std::string make_option(const CLI::Option* option, bool) const override {
    std::string line = "  " + option->get_name(false, true);
    size_t comma = 0;
    while ((comma = line.find(',', comma)) != std::string::npos) line.insert(++comma, " ");
    if (!option->get_option_text().empty()) line += " " + option->get_option_text();
    return line + "\n" + wrapped(option->get_description());
  }
};

// Registers rows of the table with CLI11, bound to one ParsedOptions. Each row costs some
// microseconds at every start, so a launch registers only the options that were given.
class CommandLine {
 public:
  explicit CommandLine(ParsedOptions& options) : options_(options) {
    app_.set_help_flag();
    app_.formatter(std::make_shared<HelpFormatter>());
  }

  void know(const OptionRow& row) {
    if (known_.insert(&row).second) bind(row, options_);
  }

  void take(const Token& token) {
    know(*token.option);
    app_.get_option("--" + std::string(token.option->name))->add_result(token.value);
  }

  void convert() {
    for (CLI::Option* option : app_.get_options({})) {
      if (!option->results().empty()) option->run_callback();
    }
  }

  std::string help() const { return app_.help(); }

 private:
  void bind(const OptionRow& row, ParsedOptions& options);
  template <class Field>
  void add(const OptionRow& row, Field& field);

  ParsedOptions& options_;
  std::set<const OptionRow*> known_;
  CLI::App app_;
};

template <class Field>
void CommandLine::add(const OptionRow& row, Field& field) {
  CLI::Option* option = app_.add_option(cli_names(row), field, std::string(row.help));
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  option->group(std::string(row.group));
  std::string value(row.value);
  if (row.kind == OptionKind::OptionalChoice) value = "[=" + value + "]";
  option->option_text(value);
}

void CommandLine::bind(const OptionRow& row, ParsedOptions& o) {
  if (row.name == "nnodes") return add(row, o.nnodes);
  if (row.name == "nproc-per-node") return add(row, o.nproc_per_node);
  if (row.name == "node-rank") return add(row, o.node_rank);
  if (row.name == "role") return add(row, o.role);
  if (row.name == "virtual-local-rank") return add(row, o.virtual_local_rank);
  if (row.name == "numa-binding") return add(row, o.numa_binding);
  if (row.name == "standalone") return add(row, o.standalone);
  if (row.name == "rdzv-backend") return add(row, o.rdzv_backend);
  if (row.name == "rdzv-endpoint") return add(row, o.rdzv_endpoint);
  if (row.name == "rdzv-id") return add(row, o.rdzv_id);
  if (row.name == "rdzv-conf") return add(row, o.rdzv_conf);
  if (row.name == "local-addr") return add(row, o.local_addr);
  if (row.name == "master-addr") return add(row, o.master_addr);
  if (row.name == "master-port") return add(row, o.master_port);
  if (row.name == "module") return add(row, o.module);
  if (row.name == "no-python") return add(row, o.no_python);
  if (row.name == "run-path") return add(row, o.run_path);
  if (row.name == "start-method") return add(row, o.start_method);
  if (row.name == "max-restarts") return add(row, o.max_restarts);
  if (row.name == "monitor-interval") return add(row, o.monitor_interval);
  if (row.name == "signals-to-handle") return add(row, o.signals_to_handle);
  if (row.name == "shutdown-timeout") return add(row, o.shutdown_timeout);
  if (row.name == "log-dir") return add(row, o.log_dir);
  if (row.name == "redirects") return add(row, o.redirects);
  if (row.name == "tee") return add(row, o.tee);
  if (row.name == "local-ranks-filter") return add(row, o.local_ranks_filter);
  if (row.name == "duplicate-stdout-filters") return add(row, o.duplicate_stdout_filters);
  if (row.name == "duplicate-stderr-filters") return add(row, o.duplicate_stderr_filters);
  if (row.name == "log-line-prefix-template") return add(row, o.log_line_prefix_template);
  if (row.name == "logs-specs") return add(row, o.logs_specs);
  if (row.name == "event-log-handler") return add(row, o.event_log_handler);
  if (row.name == "worker-store") return add(row, o.worker_store);
  if (row.name == "pass-local-rank") return add(row, o.pass_local_rank);
  if (row.name == "startup-failures") return add(row, o.startup_failures);
  if (row.name == "timing") return add(row, o.timing);
  if (row.name == "tune-malloc") return add(row, o.tune_malloc);
  if (row.name == "snapshot-dir") return add(row, o.snapshot_dir);
  if (row.name == "snapshot-replicas") return add(row, o.snapshot_replicas);
  if (row.name == "faults") return add(row, o.faults);
  if (row.name == "seed") return add(row, o.seed);
  if (row.name == "junit") return add(row, o.junit);
  if (row.name == "hang-timeout") return add(row, o.hang_timeout);
  if (row.name == "debug-rank") return add(row, o.debug_rank);
  if (row.name == "omp-threads") return add(row, o.omp_threads);
  if (row.name == "print-completion") return add(row, o.print_completion);
  CPPRUN_CHECK(row.kind == OptionKind::Question);
  const std::string help(row.help);
  app_.add_flag(cli_names(row), help)->group(std::string(row.group));
}

}  // namespace

std::string ParsedOptions::shown(std::string_view name, std::string_view value) const {
  auto found = spellings.find(name);
  std::string spelling = found == spellings.end() ? "--" + std::string(name) : found->second;
  return spelling + (spelling.size() == 2 ? " " : "=") + std::string(value);
}

Result<ParsedOptions> parse_tokens(const TokenList& tokens) {
  ParsedOptions options;
  try {
    CommandLine line(options);
    for (const Token& token : tokens.options) {
      line.take(token);
      options.spellings[token.option->name] = token.spelling;
    }
    line.convert();
  } catch (const CLI::Error& error) {
    return usage_error(error.what());
  }
  if (!tokens.program.empty()) {
    options.script = tokens.program.front();
    options.script_arguments.assign(tokens.program.begin() + 1, tokens.program.end());
  }
  return options;
}

std::string help_text() {
  ParsedOptions unused;
  CommandLine line(unused);
  for (const OptionRow& row : option_table()) line.know(row);
  return line.help();
}

}  // namespace cpprun
