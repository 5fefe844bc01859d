// Parser of torchelastic's error file, in which a worker reports its own failure, in its two
// accepted forms. Pure; no I/O.
//
//   {"message": {"message": "ValueError: text", "extraInfo": {"py_callstack": "...", "timestamp":
//   "1700000000"}}}
//   {"message": "text", "timestamp": 1700000000}
//
// The worker SDK adds "consequence_of": "peer" to extraInfo when the end of a peer broke a
// connection.
#pragma once

#include <string>
#include <string_view>

#include "common/failure/worker_exit.hpp"

namespace cpprun {

// The report in place of a file that could not be read: is_readable = false, with the reason.
ErrorReport unreadable_error_file(const std::string& path, const std::string& reason);

// Never fails: an invalid file gives is_readable = false and the reason as message. The caller
// fills in file_time.
ErrorReport parse_error_file(const std::string& path, std::string_view bytes);

}  // namespace cpprun
