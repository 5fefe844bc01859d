// The program of the preload process: preload.py, embedded at build time.
#pragma once

#include <string_view>

namespace cpprun {

std::string_view preload_source();

}  // namespace cpprun
