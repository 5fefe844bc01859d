#include "launcher/options/nproc.hpp"

#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "launcher/options/resolve.hpp"

namespace cpprun {
namespace {

constexpr std::string_view kName = "nproc-per-node";

Error nothing_to_count(const ParsedOptions& options, const Environment& environment,
                       const std::string& found) {
  size_t cpus = static_cast<size_t>(environment.count_cpus());
  return bad_value(found + ", so " + options.shown(kName, options.nproc_per_node) +
                   " has nothing to count.\n" + "use a number (" + options.shown(kName, "2") +
                   ") or " + options.shown(kName, "cpu") + " (" + text::count(cpus, "worker") +
                   " here).");
}

Result<int> checked_number(const ParsedOptions& options, int64_t number) {
  if (number > 0 && number <= limits::kWorkersPerNode) return static_cast<int>(number);
  return bad_value(options.shown(kName, number) + ": the number of workers goes from 1 to " +
                   std::to_string(limits::kWorkersPerNode));
}

}  // namespace

Result<int> resolve_nproc(const ParsedOptions& options, const Environment& environment) {
  const std::string& token = options.nproc_per_node;
  if (std::optional<int64_t> number = text::parse_int(token))
    return checked_number(options, *number);
  if (token == "cpu") return environment.count_cpus();
  if (token == "auto") {
    int gpus = environment.probe_gpus().count;
    return gpus > 0 ? gpus : environment.count_cpus();
  }
  if (token == "gpu") {
    GpuProbe gpus = environment.probe_gpus();
    if (gpus.count > 0) return gpus.count;
    return nothing_to_count(options, environment, "no GPU found (" + gpus.why_none + ")");
  }
  if (token == "xpu") return nothing_to_count(options, environment, "cpprun finds no Intel XPUs");
  return bad_value(options.shown(kName, token) + " is not known; use a number, cpu, gpu or auto");
}

}  // namespace cpprun
