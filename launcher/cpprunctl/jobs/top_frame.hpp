// One frame of `cpprunctl top`. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/cpprunctl/jobs/local_jobs.hpp"

namespace cpprun::ctl {

// "slowest: rank 3, 52.0 ms a step, at step 1200, 3 behind"; "" until workers report steps.
std::string slowest_text(const std::vector<LocalJob>& agents);

// `text` cut to the size of a terminal, with the codes that overwrite the previous frame in place:
// clearing the screen first would flicker.
std::string frame(const std::string& text, size_t rows, size_t columns);

}  // namespace cpprun::ctl
