// LaunchPlan: what --hosts starts where, as command lines. Pure: Environment and Surroundings are
// the only sources.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "common/tls/job_secret.hpp"
#include "launcher/options/options.hpp"
#include "launcher/ssh/plan/host_list.hpp"

namespace cpprun::ssh {

// What the plan needs to know of this process, and fresh random values.
struct Surroundings {
  std::string directory;  // the working directory
  std::string program;    // the path of this cpprun
  std::string host_name;
  std::string fresh_id;      // for the run id
  std::string fresh_secret;  // for the job's secret
  uint16_t fresh_port = 0;
};

struct LaunchPlan {
  std::vector<Host> hosts;
  int min_nodes = 1;     // the job may start and continue with so many hosts
  std::string nnodes;    // as the user gave it; "": as many as there are hosts
  std::string endpoint;  // --rdzv-endpoint; "": the first host
  uint16_t port = 0;     // at the first host
  bool is_static = false;
  bool has_etcd = false;
  std::string rdzv_conf;
  std::string nproc_per_node;        // where a host has no slots; "": the default
  std::vector<std::string> options;  // those that are the same on all hosts
  std::vector<std::string> script;   // and its arguments
  std::vector<std::string> ssh;      // the ssh program and its first arguments
  size_t fanout = 0;                 // hosts that one host reaches; 0: no tree
  std::string program;               // of cpprun on the hosts
  std::string own_program;           // of cpprun here
  std::string directory;
  std::string host_name;
  std::vector<std::string> variables;       // NAME=VALUE for all hosts
  std::shared_ptr<const JobSecret> secret;  // null: certificates
};

Result<LaunchPlan> make_plan(const LaunchOverSsh& launch, const Environment& environment,
                             const Surroundings& here);

// Whether the host is this machine: the launcher starts its agent without ssh.
bool is_local(const LaunchPlan& plan, const Host& host);

// The rendezvous endpoint, if the user has given none. `first`: the first host's name, as ssh
// resolves it, or "" if that is unknown.
std::string endpoint_at(const LaunchPlan& plan, const Host& host, const std::string& first);

// The arguments of cpprun on the host with this rank.
std::vector<std::string> agent_arguments(const LaunchPlan& plan, const Host& host, size_t rank,
                                         size_t count, const std::string& endpoint);

// The words of the ssh command that runs cpprun with these arguments there. Error: too long.
Result<std::vector<std::string>> ssh_command(const LaunchPlan& plan, const Host& host,
                                             const std::vector<std::string>& arguments);

// The command that asks ssh for its settings for a host, without connecting; and the name of the
// host that they hold, "" if none.
std::vector<std::string> ssh_config_command(const LaunchPlan& plan, const Host& host);
std::string host_name_of_config(const std::string& output);

}  // namespace cpprun::ssh
