// The program of the preload process: script_imports.py, then preload.py, embedded at build time.
#pragma once

#include <string_view>

namespace cpprun {

std::string_view script_imports_source();
std::string_view preload_source();

}  // namespace cpprun
