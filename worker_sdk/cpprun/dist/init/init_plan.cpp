#include "cpprun/dist/init/init_plan.hpp"

#include "common/text.hpp"

namespace cpprun::dist {
namespace {

constexpr const char* kRemedy =
    "; start the program with cpprun or torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and "
    "MASTER_PORT";

// Python too treats an empty variable as missing.
std::optional<std::string> variable(const EnvLookup& environment, const char* name) {
  const auto value = environment(name);
  return value && !value->empty() ? value : std::nullopt;
}

std::string needed(const EnvLookup& environment, const char* name, const std::string& shown) {
  const auto value = variable(environment, name);
  if (value) return *value;
  throw DistArgumentError("init_process_group with " + shown + " needs the variable " + name +
                          ", which is not set" + kRemedy);
}

int number(const std::string& value, const std::string& from) {
  return whole_number("init_process_group", value, from);
}

[[noreturn]] void refuse(const std::string& url, const std::string& why) {
  throw DistArgumentError("init_method '" + url + "': " + why);
}

std::map<std::string, std::string> parse_query(const std::string& url, const std::string& text) {
  std::map<std::string, std::string> query;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('&', begin), text.size());
    const std::string pair = text.substr(begin, end - begin);
    const size_t equals = pair.find('=');
    if (equals == std::string::npos) refuse(url, "'" + pair + "' is not name=value");
    const std::string name = pair.substr(0, equals);
    if (name != "rank" && name != "world_size" && name != "store" && name != "use_libuv") {
      refuse(url, "'" + name + "' is not known; there are rank, world_size and store");
    }
    query[name] = pair.substr(equals + 1);
    begin = end + 1;
  }
  return query;
}

// "host:port" or "[::1]:port".
void parse_place(const std::string& url, const std::string& place, InitUrl& to) {
  const size_t bracket = place.rfind(']');
  const size_t colon = place.rfind(':');
  if (colon == std::string::npos || (bracket != std::string::npos && colon < bracket)) {
    refuse(url, "the port is missing; write tcp://host:port");
  }
  to.host = place.substr(0, colon);
  if (to.host.size() > 2 && to.host.front() == '[' && to.host.back() == ']') {
    to.host = to.host.substr(1, to.host.size() - 2);
  } else if (to.host.find(':') != std::string::npos) {
    refuse(url, "an IPv6 address needs brackets: tcp://[" + to.host + "]:port");
  }
  if (to.host.empty()) refuse(url, "the host is missing; write tcp://host:port");
  const auto port = text::parse_int(place.substr(colon + 1));
  if (!port || *port < 1 || *port > 65'535) {
    refuse(url, "'" + place.substr(colon + 1) + "' is no port from 1 to 65535");
  }
  to.port = static_cast<int>(*port);
}

struct Source {
  int argument;
  const char* query;
  const char* variable;
};

int number_from(const Source& source, const InitUrl& url, const EnvLookup& environment,
                const std::string& shown) {
  if (source.argument != -1) return source.argument;
  const auto found = url.query.find(source.query);
  if (found != url.query.end()) {
    return number(found->second, std::string(source.query) + " in " + shown);
  }
  return number(needed(environment, source.variable, shown), source.variable);
}

void check_place(const InitPlan& plan) {
  if (plan.world_size < 1) {
    throw DistArgumentError("init_process_group: world_size is " + std::to_string(plan.world_size) +
                            ", but must be at least 1");
  }
  if (plan.rank >= 0 && plan.rank < plan.world_size) return;
  throw DistArgumentError("init_process_group: rank is " + std::to_string(plan.rank) +
                          ", but must be from 0 to " + std::to_string(plan.world_size - 1) +
                          " in a world of " + std::to_string(plan.world_size));
}

// True if the URL or CPPRUN_SDK_STORE asks for the agent's store. The default is
// MASTER_ADDR:MASTER_PORT, which Python ranks use.
bool wants_agent_store(const InitUrl& url, const EnvLookup& environment) {
  const auto found = url.query.find("store");
  const std::string choice = found != url.query.end()
                                 ? found->second
                                 : variable(environment, "CPPRUN_SDK_STORE").value_or("master");
  if (choice == "agent" || choice == "master") return choice == "agent";
  throw DistArgumentError("init_process_group: the store is '" + choice +
                          "', but must be 'agent' (CPPRUN_STORE) or 'master' "
                          "(MASTER_ADDR:MASTER_PORT)");
}

void use_store_at(InitPlan& plan, const std::string& host_and_port) {
  const InitUrl place = parse_init_url("tcp://" + host_and_port);
  plan.host = place.host;
  plan.port = place.port;
}

bool is_agent_store(const EnvLookup& environment) {
  return variable(environment, "TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
}

void plan_env(InitPlan& plan, const InitUrl& url, const EnvLookup& environment) {
  const auto agent = variable(environment, "CPPRUN_STORE");
  if (agent && wants_agent_store(url, environment)) {
    use_store_at(plan, *agent);
    plan.is_hosted_elsewhere = true;
    return;
  }
  plan.host = needed(environment, "MASTER_ADDR", plan.shown);
  plan.port = number(needed(environment, "MASTER_PORT", plan.shown), "MASTER_PORT");
  if (plan.port < 1 || plan.port > 65'535) {
    throw DistArgumentError("init_process_group: MASTER_PORT is " + std::to_string(plan.port) +
                            ", but must be from 1 to 65535");
  }
  plan.is_hosted_elsewhere = is_agent_store(environment);
}

// Rank 0 serves tcp://, unless the agent serves this address.
void plan_tcp(InitPlan& plan, const InitUrl& url, const EnvLookup& environment) {
  plan.host = url.host;
  plan.port = url.port;
  plan.is_hosted_elsewhere = is_agent_store(environment) &&
                             variable(environment, "MASTER_ADDR") == url.host &&
                             variable(environment, "MASTER_PORT") == std::to_string(url.port);
}

// Without a launcher nothing distinguishes attempts; the keys are then Python's.
std::string attempt_of(const EnvLookup& environment) {
  const auto run_id = variable(environment, "TORCHELASTIC_RUN_ID");
  if (!run_id) return "";
  return *run_id + "/" + variable(environment, "TORCHELASTIC_RESTART_COUNT").value_or("0") + "/" +
         variable(environment, "CPPRUN_ROUND").value_or("0");
}

InitPlan given_store(const InitOptions& options) {
  if (!options.init_method.empty()) {
    throw DistArgumentError("init_process_group: both store and init_method ('" +
                            options.init_method + "') are given; give one of them");
  }
  InitPlan plan;
  plan.method = InitPlan::Method::Given;
  plan.shown = "the given store";
  plan.rank = options.rank;
  plan.world_size = options.world_size;
  if (plan.rank == -1 || plan.world_size == -1) {
    throw DistArgumentError(
        "init_process_group with a store needs rank and world_size as arguments too");
  }
  check_place(plan);
  return plan;
}

}  // namespace

int whole_number(const std::string& call, const std::string& value, const std::string& from) {
  const auto parsed = text::parse_int(value);
  if (parsed && *parsed >= 0 && *parsed < (1 << 30)) return static_cast<int>(*parsed);
  throw DistArgumentError(call + ": " + from + " is '" + value +
                          "', which is no whole number from 0");
}

InitUrl parse_init_url(const std::string& url) {
  const size_t mark = url.find("://");
  if (mark == std::string::npos) refuse(url, "write env://, tcp://host:port or file:///path");
  InitUrl parsed;
  parsed.scheme = url.substr(0, mark);
  const std::string rest = url.substr(mark + 3);
  const size_t question = std::min(rest.find('?'), rest.size());
  const std::string place = rest.substr(0, question);
  if (question < rest.size()) parsed.query = parse_query(url, rest.substr(question + 1));
  if (parsed.scheme == "tcp") {
    parse_place(url, place, parsed);
  } else if (parsed.scheme == "file") {
    if (place.empty() || place.front() != '/') {
      refuse(url, "the path must begin with '/': file:///folder/name");
    }
    parsed.path = place;
  } else if (parsed.scheme != "env") {
    refuse(url, "'" + parsed.scheme + "' is not known; there are env://, tcp:// and file://");
  } else if (!place.empty()) {
    refuse(url, "env:// takes no host; write tcp://" + place);
  }
  return parsed;
}

InitPlan make_init_plan(const InitOptions& options, const EnvLookup& environment) {
  if (options.store) return given_store(options);
  InitPlan plan;
  plan.shown = options.init_method.empty() ? "env://" : options.init_method;
  const InitUrl url = parse_init_url(plan.shown);
  plan.rank = number_from({options.rank, "rank", "RANK"}, url, environment, plan.shown);
  plan.world_size =
      number_from({options.world_size, "world_size", "WORLD_SIZE"}, url, environment, plan.shown);
  check_place(plan);
  if (url.scheme == "env") plan_env(plan, url, environment);
  if (url.scheme == "tcp") plan_tcp(plan, url, environment);
  if (url.scheme == "file") {
    plan.method = InitPlan::Method::File;
    plan.path = url.path;
    plan.attempt = attempt_of(environment);
  }
  return plan;
}

}  // namespace cpprun::dist
