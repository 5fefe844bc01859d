// From what was typed to what is done: judges values, fills in defaults, says why something can't
// be. Pure: everything it knows of the machine comes through Environment.
#pragma once

#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "common/result.hpp"
#include "launcher/options/environment.hpp"
#include "launcher/options/parsed_options.hpp"

namespace cpprun {

struct Launch {
  AgentConfig config;
  std::vector<std::string> warnings;  // one line each, for the caller to print
};

Result<Launch> resolve(const ParsedOptions& options, const Environment& environment);

// The parts of resolve(), one noun each, in this order. Each reads the options and writes its part
// of the launch.
Status resolve_workers(const ParsedOptions& options, const Environment& environment,
                       Launch& launch);
Status resolve_program(const ParsedOptions& options, const Environment& environment,
                       Launch& launch);
Status resolve_logs(const ParsedOptions& options, const Environment& environment, Launch& launch);
Status resolve_rendezvous(const ParsedOptions& options, const Environment& environment,
                          Launch& launch);
Status resolve_faults(const ParsedOptions& options, const Environment& environment, Launch& launch);
Status resolve_agent(const ParsedOptions& options, const Environment& environment, Launch& launch);

// An Error of kind BadValue.
Error bad_value(std::string text);

}  // namespace cpprun
