#include "launcher/options/resolve.hpp"

namespace cpprun {

Error bad_value(std::string text) { return Error{ErrorKind::BadValue, std::move(text)}; }

Result<Launch> resolve(const ParsedOptions& options, const Environment& environment) {
  Launch launch;
  for (auto* part : {resolve_workers, resolve_program, resolve_logs, resolve_rendezvous,
                     resolve_agent, resolve_faults}) {
    if (Status status = part(options, environment, launch); !status) return status.error();
  }
  return launch;
}

}  // namespace cpprun
