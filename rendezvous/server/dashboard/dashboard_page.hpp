// The dashboard: one HTML page with all that it needs, made at build time of the files in
// dashboard/.
#pragma once

#include <string_view>

namespace cpprun {

// Lives as long as the program.
std::string_view dashboard_page();

}  // namespace cpprun
