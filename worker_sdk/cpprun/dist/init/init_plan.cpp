#include "cpprun/dist/init/init_plan.hpp"

#include <cstdlib>

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
  const auto parsed = text::parse_int(value);
  if (parsed && *parsed >= 0 && *parsed < (1 << 30)) return static_cast<int>(*parsed);
  throw DistArgumentError("init_process_group: " + from + " is '" + value +
                          "', which is no whole number from 0");
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

std::optional<std::string> own_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
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
