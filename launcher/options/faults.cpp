// Options of fault injection: the plan's file, its seed, and the report's path.
#include "common/limits/faults.hpp"
#include "common/faults/draw.hpp"
#include "common/faults/plan.hpp"
#include "launcher/options/resolve.hpp"

namespace cpprun {
namespace {

// The plan's file, by flag or variable; empty: there is no plan.
std::string plan_file(const ParsedOptions& options, const Environment& environment) {
  if (!options.faults.empty()) return options.faults;
  const std::string_view variable = environment.text("CPPRUN_FAULTS");
  return variable.empty() || faults::is_inline(variable) ? "" : std::string(variable);
}

Status check_alone(const ParsedOptions& options) {
  for (const char* name : {"seed", "junit"}) {
    if (!options.is_given(name)) continue;
    return bad_value("--" + std::string(name) +
                     " goes with a fault plan\nhint: name one with --faults");
  }
  return {};
}

// The seed is --seed, else the plan's, else 0: runs are reproducible by default.
Status check(const ParsedOptions& options, const faults::Plan& plan) {
  if (options.seed && *options.seed < 0) {
    return bad_value(options.shown("seed", *options.seed) +
                     " is no valid value\nhint: write a number from 0");
  }
  const auto& expect = plan.expect;
  if (expect && expect->final_hash && expect->final_hash->is.empty()) {
    return bad_value(
        "the fault plan " + plan.name +
        ": expect.final_hash has no 'is'\nhint: give the file's crc32, or run the plan with "
        "cpprunctl chaos, which compares with a run without faults");
  }
  return {};
}

}  // namespace

Status resolve_faults(const ParsedOptions& options, const Environment& environment,
                      Launch& launch) {
  const std::string path = plan_file(options, environment);
  if (path.empty()) return check_alone(options);
  const std::optional<std::string> text = environment.read_file(path, limits::kFaultPlanBytes + 1);
  if (!text) {
    return bad_value("the fault plan '" + path +
                     "' can't be read\nhint: docs/reference/faults.md has examples");
  }
  Result<faults::Plan> plan = faults::parse_plan(*text, path);
  if (!plan) return plan.error();
  if (Status ok = check(options, *plan); !ok) return ok;
  const auto seed = options.seed ? static_cast<uint64_t>(*options.seed) : plan->seed;
  FaultConfig& config = launch.config.faults;
  config.plan = faults::drawn(std::move(*plan), seed);
  config.junit = options.junit;
  config.report_file = environment.text("CPPRUN_FAULT_ACCOUNT");
  return {};
}

}  // namespace cpprun
