#include "launcher/options/options.hpp"

#include <algorithm>

#include "common/text.hpp"
#include "common/version.hpp"
#include "launcher/options/cluster.hpp"
#include "launcher/options/parse.hpp"
#include "launcher/options/tokenizer.hpp"

namespace cpprun {

namespace {

std::string answer(const TokenList& tokens) {
  if (tokens.question->name == "help") return tokens.is_brief ? brief_help_text() : help_text();
  if (tokens.question->name == "version") return "cpprun " + version() + "\n";
  return completion_script(tokens.options.back().value);
}

// Not inlined: with the moved alternative visible, g++ 12 warns that the other is uninitialised.
template <class Part>
[[gnu::noinline]] OptionsResult options_result(Part part) {
  return OptionsResult(std::move(part));
}

// Options that only mean something together with a list of hosts.
Status check_ssh_options(const ParsedOptions& options) {
  if (options.is_over_ssh()) {
    if (!options.stdin_control) return {};
    return bad_value("--stdin-control is for the agents that --hosts starts\nhint: leave it out");
  }
  for (const char* name : {"include", "exclude", "export"}) {
    if (!options.is_given(name)) continue;
    return bad_value(options.shown(name, "...") +
                     " needs the hosts: add --hosts=a:8,b:8 or --hostfile=FILE");
  }
  return {};
}

// The hosting node may be the replacement of one that was lost in silence, which it cannot know.
// The workers of the others then run until their leases end, so for one node lease it begins no
// round with fewer nodes than the job may have (I1).
void outlast_replaced_host(RendezvousConfig& config) {
  if (config.backend != Backend::Cpprun || config.min_nodes == config.max_nodes) return;
  RendezvousConf& conf = config.conf;
  conf.last_call = std::max(conf.last_call.value_or(Duration{}), conf.lease);
}

}  // namespace

Error bad_value(std::string text) { return Error{ErrorKind::BadValue, std::move(text)}; }

Result<Launch> resolve(const ParsedOptions& given, const Environment& environment) {
  ParsedOptions options = given;
  Result<ClusterView> view = fill_from_cluster(options, environment);
  if (!view) return view.error();
  Launch launch;
  launch.config.cluster = std::move(view->config);
  launch.warnings = std::move(view->warnings);
  launch.inferred = std::move(view->inferred);
  launch.is_surplus = view->is_surplus;
  if (launch.is_surplus) return launch;
  for (auto* part : {resolve_workers, resolve_program, resolve_logs, resolve_rendezvous,
                     resolve_tls, resolve_agent, resolve_faults}) {
    if (Status status = part(options, environment, launch); !status) return status.error();
  }
  std::optional<bool>& is_host = launch.config.rendezvous.conf.is_host;
  if (!is_host) is_host = view->is_host;
  const bool is_in_pod = launch.config.cluster.kind == ClusterConfig::Kind::Kubernetes;
  if ((is_in_pod && view->is_host) || options.stdin_control)
    outlast_replaced_host(launch.config.rendezvous);
  launch.config.rendezvous.further_ports = std::move(view->further_ports);
  launch.config.rendezvous.expected_nodes = view->expected_nodes;
  return launch;
}

Result<OptionsResult> read_options(std::span<const std::string> args,
                                   const Environment& environment) {
  Result<TokenList> tokens = tokenize(args, environment);
  if (!tokens) return tokens.error();
  if (tokens->question != nullptr) return options_result(TextToShow{answer(*tokens)});
  Result<ParsedOptions> parsed = parse_tokens(*tokens, environment.text("HOME"));
  if (!parsed) return parsed.error();
  if (Status status = check_ssh_options(*parsed); !status) return status.error();
  if (parsed->is_over_ssh()) {
    return options_result(LaunchOverSsh{std::move(*parsed), std::move(*tokens)});
  }
  Result<Launch> launch = resolve(*parsed, environment);
  if (!launch) return launch.error();
  return options_result(std::move(*launch));
}

}  // namespace cpprun
