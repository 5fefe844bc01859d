// Turns the typed options into a Launch: checks values, fills in defaults, explains errors. Pure:
// it knows the machine only through Environment.
#pragma once

#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "common/result.hpp"
#include "launcher/options/environment.hpp"
#include "launcher/options/parsed_options.hpp"

namespace cpprun {

// --color, --quiet, --verbose.
struct ConsoleOptions {
  std::string color = "auto";
  std::string log_level;  // as for LOGLEVEL; empty: LOGLEVEL itself
};

struct Launch {
  AgentConfig config;
  std::vector<std::string> warnings;  // one line each; the caller prints them
  std::vector<std::string> notes;     // the same, for what is no cause for alarm
  std::string inferred;               // one line: what --cluster has filled in; empty: nothing
  ConsoleOptions console;
  // Another launcher on this node runs the job: exit with 0 and start nothing.
  bool is_surplus = false;
  std::string report;         // --report; empty: none
  bool counts_steps = false;  // --progress=auto, and the workers are Python programs

  // Appends to `inferred`.
  void add_inferred(const std::string& text) { inferred += (inferred.empty() ? "" : ", ") + text; }
};

Result<Launch> resolve(const ParsedOptions& options, const Environment& environment);

// The parts of resolve(), called in this order. Each reads the options and writes its part of the
// launch.
Status resolve_workers(const ParsedOptions& options, const Environment& environment,
                       Launch& launch);
Status resolve_program(const ParsedOptions& options, const Environment& environment,
                       Launch& launch);
Status resolve_logs(const ParsedOptions& options, const Environment& environment, Launch& launch);
Status resolve_rendezvous(const ParsedOptions& options, const Environment& environment,
                          Launch& launch);
Status resolve_tls(const ParsedOptions& options, const Environment& environment, Launch& launch);
Status resolve_faults(const ParsedOptions& options, const Environment& environment, Launch& launch);
Status resolve_agent(const ParsedOptions& options, const Environment& environment, Launch& launch);

// An error of kind BadValue.
Error bad_value(std::string text);

}  // namespace cpprun
