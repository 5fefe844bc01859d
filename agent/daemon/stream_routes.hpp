// Routes of a worker's stdout and stderr, from --redirects, --tee and the filters. The rules are
// torchrun's: docs/reference/supervision.md. Pure.
#pragma once

#include <string>

#include "agent/core/config.hpp"
#include "agent/process/streams/log_folder.hpp"
#include "agent/process/worker_spec.hpp"

namespace cpprun {

struct StreamRoutes {
  StreamRoute out;
  StreamRoute err;
};
StreamRoutes route_streams(const LogConfig& config, const LogFolder& folder, int local_rank,
                           const std::string& prefix);

// Whether the console shows this worker's stderr, if its log folder could be created.
bool shows_stderr(const LogConfig& config, int local_rank);

// Whether --redirects writes output to files that the console does not show.
bool hides_output(const LogConfig& config);

}  // namespace cpprun
