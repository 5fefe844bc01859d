// --nproc-per-node: a number, or a word such as "gpu" whose devices are counted.
#pragma once

#include "common/result.hpp"
#include "launcher/options/environment.hpp"
#include "launcher/options/parsed_options.hpp"

namespace cpprun {

Result<int> resolve_nproc(const ParsedOptions& options, const Environment& environment);

}  // namespace cpprun
