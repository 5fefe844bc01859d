#include "launcher/options/logs.hpp"

#include <algorithm>

#include "common/text.hpp"
#include "launcher/options/resolve.hpp"

namespace cpprun {
namespace {

std::optional<StreamBits> parse_bits(std::string_view text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return std::nullopt;
  return StreamBits{static_cast<uint8_t>(text[0] - '0')};
}

std::optional<int64_t> parse_rank(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  return text::parse_int(text);
}

void warn_of_missing_rank(const std::string& what, int rank, int nproc, Launch& launch) {
  if (rank < nproc) return;
  launch.warnings.push_back(what + " names local rank " + std::to_string(rank) +
                            ", but the highest here is " + std::to_string(nproc - 1));
}

Status read_streams(const ParsedOptions& options, std::string_view name, const std::string& text,
                    std::vector<StreamBits>& out, Launch& launch) {
  int nproc = launch.config.workers.nproc;
  std::string what = options.shown(name, text);
  std::optional<StreamSpec> spec = parse_stream_spec(text, nproc);
  if (!spec) {
    return bad_value(
        what +
        " is not understood\nhint: write 0, 1 (stdout), 2 (stderr) or 3 (both) for all "
        "workers, or such by local rank: 0:3,1:1");
  }
  warn_of_missing_rank(what, spec->highest_rank, nproc, launch);
  out = std::move(spec->by_rank);
  return {};
}

Status read_ranks_filter(const ParsedOptions& options, Launch& launch) {
  if (options.local_ranks_filter.empty()) return {};
  std::string what = options.shown("local-ranks-filter", options.local_ranks_filter);
  std::set<int> ranks;
  for (const std::string& entry : text::split(options.local_ranks_filter, ',')) {
    std::optional<int64_t> rank = text::parse_int(entry);
    if (!rank || *rank < 0 || *rank > INT32_MAX) {
      return bad_value(what + ": '" + entry +
                       "' is no local rank\nhint: write numbers with commas, such as 0,2");
    }
    ranks.insert(static_cast<int>(*rank));
  }
  warn_of_missing_rank(what, *ranks.rbegin(), launch.config.workers.nproc, launch);
  launch.config.logs.local_ranks_filter = std::move(ranks);
  return {};
}

// --logs-specs names a Python entry point, which cpprun cannot load; only the default is accepted.
Status check_logs_specs(const ParsedOptions& options) {
  if (options.logs_specs.empty() || options.logs_specs == "default") return {};
  return bad_value(
      options.shown("logs-specs", options.logs_specs) +
      " names a Python plug-in, which cpprun has no Python to load into\nhint: leave it out "
      "and use --log-dir, --redirects and --tee");
}

Status read_console(const ParsedOptions& options, Launch& launch) {
  if (options.quiet && options.verbose) {
    return bad_value("--quiet and --verbose exclude each other\nhint: leave one out");
  }
  launch.console.color = options.color;
  if (options.quiet) launch.console.log_level = "ERROR";
  if (options.verbose) launch.console.log_level = "INFO";
  using enum FailureFormat;
  const std::string& format = options.failure_format;
  launch.config.failure_format = format == "summary"    ? Summary
                                 : format == "torchrun" ? Torchrun
                                 : format == "both"     ? Both
                                                        : Auto;
  return {};
}

}  // namespace

std::optional<StreamSpec> parse_stream_spec(std::string_view text, int nproc) {
  StreamSpec spec;
  spec.by_rank.resize(static_cast<size_t>(nproc));
  if (std::optional<StreamBits> bits = parse_bits(text)) {
    std::fill(spec.by_rank.begin(), spec.by_rank.end(), *bits);
    return spec;
  }
  for (const std::string& entry : text::split(text, ',')) {
    size_t colon = entry.find(':');
    if (colon == std::string::npos) return std::nullopt;
    std::optional<int64_t> rank = parse_rank(std::string_view(entry).substr(0, colon));
    std::optional<StreamBits> bits = parse_bits(std::string_view(entry).substr(colon + 1));
    if (!rank || !bits) return std::nullopt;
    spec.highest_rank = static_cast<int>(std::clamp<int64_t>(*rank, spec.highest_rank, INT32_MAX));
    if (*rank < nproc) spec.by_rank[static_cast<size_t>(*rank)] = *bits;
  }
  return spec;
}

std::vector<std::string> parse_line_filters(std::string_view text) {
  std::vector<std::string> filters(1);
  for (size_t i = 0; i < text.size(); ++i) {
    bool is_comma = text[i] == ',';
    bool is_double = is_comma && i + 1 < text.size() && text[i + 1] == ',';
    if (is_comma && !is_double) {
      filters.emplace_back();
      continue;
    }
    filters.back() += text[i];
    if (is_double) ++i;
  }
  std::erase(filters, "");
  return filters;
}

Status resolve_logs(const ParsedOptions& options, const Environment& environment, Launch& launch) {
  if (Status status = check_logs_specs(options); !status) return status;
  if (Status status = read_console(options, launch); !status) return status;
  LogConfig& logs = launch.config.logs;
  logs.dir = options.log_dir;
  if (options.is_given("report") && options.report.empty()) {
    return bad_value("--report names no file\nhint: write --report=FILE");
  }
  if (!options.report.empty() && options.log_dir == "/dev/null") {
    return bad_value(options.shown("report", options.report) +
                     " needs log files, and --log-dir=/dev/null makes none\nhint: leave --log-dir "
                     "out, or name a folder");
  }
  launch.report = options.report;
  if (Status s = read_streams(options, "redirects", options.redirects, logs.redirects, launch); !s)
    return s;
  if (Status s = read_streams(options, "tee", options.tee, logs.tee, launch); !s) return s;
  if (Status s = read_ranks_filter(options, launch); !s) return s;
  logs.duplicate_stdout_filters = parse_line_filters(options.duplicate_stdout_filters);
  logs.duplicate_stderr_filters = parse_line_filters(options.duplicate_stderr_filters);
  std::string_view prefix = options.log_line_prefix_template;
  if (prefix.empty()) prefix = environment.text("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  if (!prefix.empty()) logs.prefix_template = prefix;
  return {};
}

}  // namespace cpprun
