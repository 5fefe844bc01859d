#include "tests/support/sim/scenario/scenario_parser.hpp"

#include <algorithm>
#include <cctype>

#include "common/text.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

namespace {

bool is_placeholder(const std::string& word) {
  return word.size() > 1 && std::all_of(word.begin(), word.end(),
                                        [](unsigned char c) { return std::isupper(c) != 0; });
}

bool parse_nnodes(std::string_view value, control::JobSpec& job_spec) {
  std::vector<std::string> parts = text::split(value, ':');
  std::optional<int64_t> min = text::parse_int(parts.front());
  std::optional<int64_t> max = text::parse_int(parts.back());
  if (!min || !max || parts.size() > 2) return false;
  job_spec.min_nodes = *min;
  job_spec.max_nodes = *max;
  return true;
}

Duration* duration_setting(std::string_view name, ClusterOptions& options) {
  if (name == "lease") return &options.job_spec.lease;
  if (name == "heartbeat") return &options.job_spec.heartbeat;
  if (name == "scale-up-interval") return &options.job_spec.scale_up_interval;
  if (name == "last-call") return &options.job_spec.last_call;
  if (name == "join-timeout") return &options.join_timeout;
  if (name == "grace") return &options.stop_grace;
  if (name == "restart-backoff") return &options.job_spec.restart_backoff;
  if (name == "wait-reminder") return &options.wait_reminder_interval;
  return nullptr;
}

int64_t* number_setting(std::string_view name, ClusterOptions& options) {
  if (name == "max-restarts") return &options.job_spec.max_restarts;
  if (name == "max-hangs") return &options.job_spec.max_hangs;
  if (name == "max-node-losses") return &options.job_spec.max_node_losses;
  if (name == "exclude-after") return &options.job_spec.exclude_after;
  if (name == "nproc") return &options.nproc;
  if (name == "master-port") return &options.job_spec.master_port;
  return nullptr;
}

}  // namespace

std::optional<std::vector<std::string>> match(std::string_view pattern,
                                              const std::vector<std::string>& words) {
  std::vector<std::string> expected = text::split(pattern, ' ');
  const bool takes_rest = expected.back() == "...";
  if (takes_rest) expected.pop_back();
  if (takes_rest ? words.size() <= expected.size() : words.size() != expected.size()) {
    return std::nullopt;
  }
  std::vector<std::string> found;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i >= expected.size() || is_placeholder(expected[i])) {
      found.push_back(words[i]);
    } else if (words[i] != expected[i]) {
      return std::nullopt;
    }
  }
  return found;
}

std::optional<Duration> parse_duration(std::string_view text) {
  size_t unit_at = text.find_first_not_of("0123456789.");
  if (unit_at == std::string_view::npos) return std::nullopt;
  std::optional<double> number = text::parse_double(text.substr(0, unit_at));
  std::string_view unit = text.substr(unit_at);
  if (!number) return std::nullopt;
  if (unit == "ms") return seconds(*number / 1000);
  if (unit == "s") return seconds(*number);
  if (unit == "m") return seconds(*number * 60);
  return std::nullopt;
}

std::optional<control::AdminCommand> parse_admin_command(const std::vector<std::string>& words) {
  control::AdminCommand order;
  order.id = 1;
  if (match("restart", words)) return order;
  if (match("stop", words) || match("stop resumable", words)) {
    order.kind = control::AdminCommandKind::Stop;
    order.is_resumable = words.size() == 2;
    return order;
  }
  if (match("drain NODE", words)) {
    order.kind = control::AdminCommandKind::Drain;
    order.node = words[1];
    return order;
  }
  if (match("exclude HOST", words) || match("readmit HOST", words)) {
    order.kind = *control::admin_command_kind(words[0]);
    order.node = words[1];
    return order;
  }
  const auto nodes = words.size() == 2 ? text::parse_int(words[1]) : std::nullopt;
  if (!match("scale NN", words) || !nodes) return std::nullopt;
  order.kind = control::AdminCommandKind::Scale;
  order.nodes = *nodes;
  return order;
}

bool apply_setting(std::string_view setting, ClusterOptions& options) {
  if (setting == "first-node-is-host") return options.is_first_embedded = true;
  if (setting == "node-check") return options.has_node_check = true;
  if (setting == "etcd") return options.has_etcd = true;
  if (setting == "static") return options.job_spec.has_fixed_ranks = true;
  if (setting == "stops-on-repeat") return options.job_spec.stops_on_repeat = true;
  if (setting == "agent-store") return options.job_spec.is_agent_store = true;
  size_t equals = setting.find('=');
  if (equals == std::string_view::npos) return false;
  std::string_view name = setting.substr(0, equals);
  std::string_view value = setting.substr(equals + 1);
  if (name == "nnodes") return parse_nnodes(value, options.job_spec);
  if (Duration* duration = duration_setting(name, options)) {
    std::optional<Duration> parsed = parse_duration(value);
    if (parsed) *duration = *parsed;
    return parsed.has_value();
  }
  std::optional<int64_t> number = text::parse_int(value);
  int64_t* wanted = number_setting(name, options);
  if (wanted == nullptr || !number) return false;
  *wanted = *number;
  return true;
}

}  // namespace cpprun::sim
