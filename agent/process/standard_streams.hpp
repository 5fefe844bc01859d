// What stands in for stdin, stdout or stderr where we were started without.
#pragma once

namespace cpprun {

// Before anything else is opened: a descriptor of ours must never get a number that means a
// stream, or workers would inherit it as theirs.
void fill_standard_streams();

}  // namespace cpprun
