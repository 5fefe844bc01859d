// The version of cpprun that this program was built from. Its own source file, so that a new
// version compiles one file.
#pragma once

#include <string>

namespace cpprun {

// Such as "0.1.0".
const std::string& version();

}  // namespace cpprun
