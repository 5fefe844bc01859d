// The worker's own account of its end: TORCHELASTIC_ERROR_FILE, in the shape that torchelastic and
// cpprun read and show in their summaries.
//
//   {"message": {"message": "std::runtime_error: text", "extraInfo": {"py_callstack": "...",
//   "timestamp": "1700000000"}}}
//
// The first report of a process counts: what follows from it must not replace it. The file appears
// whole or not at all. Children made by fork report nothing. cpprun::main reports exceptions,
// std::terminate and fatal signals by itself. Python counterpart: ErrorHandler.record_exception of
// torch.distributed.elastic.multiprocessing.errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cpprun::worker {

enum class Reported {
  Written,
  NoFile,       // no launcher asked for one
  NotTheFirst,  // this process has reported already, or is a child of the one that reports
  Failed,       // the file could not be written; errno says why
};

// What becomes known of an error. `stack` may be empty. `is_consequence`: a peer's end brought it
// about, so the cause is elsewhere (extraInfo gets "consequence_of": "peer").
struct ErrorText {
  std::string_view message{};
  std::string_view stack{};
  bool is_consequence = false;
};

// Says once per process where reports go (later calls change nothing). cpprun::main does it with
// TORCHELASTIC_ERROR_FILE; report_error does it as well.
void set_error_file(const std::string& path);
// "": there is none.
const char* error_file() noexcept;

// Any thread, even in a signal handler once set_error_file was called.
Reported write_error_file(const ErrorText& text) noexcept;

// For programs that end by themselves after an error of their own. Does not end the process.
Reported report_error(std::string_view message);

// True for the texts with which Gloo, NCCL, TCPStore and the kernel say that the other side of a
// connection has gone.
bool is_peer_loss(std::string_view text) noexcept;

}  // namespace cpprun::worker
