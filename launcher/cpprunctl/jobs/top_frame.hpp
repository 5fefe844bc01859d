// One frame of `cpprunctl top`. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/cpprunctl/jobs/local_jobs.hpp"

namespace cpprun::ctl {

// "slowest: rank 3, 52.0 ms a step, at step 1200, 3 behind the first"; "" while nobody says steps.
std::string slowest_text(const std::vector<LocalJob>& agents);

// `text`, cut to the lines and columns of a terminal and painted over what was there, without
// clearing it first: nothing flickers.
std::string frame(const std::string& text, size_t rows, size_t columns);

}  // namespace cpprun::ctl
