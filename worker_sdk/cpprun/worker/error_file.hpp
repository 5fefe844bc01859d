/// @file
/// The worker's error report: the file TORCHELASTIC_ERROR_FILE in the format that torchelastic and
/// cpprun read and show in their summaries.
///
///     {"message": {"message": "std::runtime_error: text", "extraInfo": {"py_callstack": "...",
///     "timestamp": "1700000000"}}}
///
/// Only the first report of a process is written, so that later errors do not hide the cause. The
/// file is renamed into place when it is complete. Children made by fork do not report.
/// cpprun::main reports exceptions, std::terminate and fatal signals by itself. Python counterpart:
/// ErrorHandler.record_exception of torch.distributed.elastic.multiprocessing.errors.
#pragma once

#include <string>
#include <string_view>

namespace cpprun::worker {

/// What became of a report.
enum class Reported {
  Written,
  NoFile,       ///< TORCHELASTIC_ERROR_FILE is not set
  NotTheFirst,  ///< this process has reported already, or is a forked child
  Failed,       ///< the file could not be written; errno has the reason
};

/// The content of a report.
struct ErrorText {
  std::string_view message{};  ///< what went wrong: type and text of the exception
  std::string_view stack{};    ///< one line per call; may be empty
  /// True if the error follows from the end of another worker: extraInfo gets "consequence_of":
  /// "peer".
  bool is_consequence = false;
};

/// Sets the path of the error file, once per process; later calls do nothing. cpprun::main and
/// report_error call it with TORCHELASTIC_ERROR_FILE.
void set_error_file(const std::string& path);
/// For a process that has entered another round: reports go to this path, and the first one counts
/// again. Not while another thread calls it.
void change_error_file(const std::string& path);
/// The path, or "" if there is none.
const char* error_file() noexcept;

/// Writes the report unless this process has written one. Any thread. Safe in a signal handler
/// after set_error_file.
Reported write_error_file(const ErrorText& text) noexcept;

/// For programs that end by themselves after an error of their own: writes `message` to
/// TORCHELASTIC_ERROR_FILE. Does not end the process.
Reported report_error(std::string_view message);

/// True if `text` contains one of the messages with which Gloo, NCCL, TCPStore and the kernel
/// report that the peer has closed a connection.
bool is_peer_loss(std::string_view text) noexcept;

}  // namespace cpprun::worker
