// The dashboard as one self-contained HTML page, generated at build time from the files here.
#pragma once

#include <string_view>

namespace cpprun {

// The view is valid as long as the program runs.
std::string_view dashboard_page();

}  // namespace cpprun
