// What a worker wrote about its own end: torchelastic's error file in its two accepted forms. Pure;
// no I/O.
//
//   {"message": {"message": "ValueError: text", "extraInfo": {"py_callstack": "...", "timestamp":
//   "1700000000"}}}
//   {"message": "text", "timestamp": 1700000000}
//
// The worker SDK adds "consequence_of": "peer" to extraInfo where a peer's end broke a connection.
#pragma once

#include <string>
#include <string_view>

#include "common/failure/worker_exit.hpp"

namespace cpprun {

// Never fails: what is no such file comes back with is_readable = false and the reason as message.
// file_time is the caller's to fill in.
ErrorReport parse_error_file(const std::string& path, std::string_view bytes);

}  // namespace cpprun
