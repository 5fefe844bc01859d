// The stack of the calling thread as text, for reports. Fit for signal handlers: reads /proc and
// the files of the program, allocates nothing. One thread at a time (it works in static memory).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cpprun/worker/internal/fixed_text.hpp"

namespace cpprun::worker {

// Loads what walking a stack needs, which must not happen in a signal handler. Call it once before.
void prepare_stack_trace();

// Where a signal interrupted the thread.
struct Interrupted {
  uintptr_t program_counter = 0;
  // Where the caller's address is kept. Read after a jump to nowhere only: it may be out of bounds.
  const uintptr_t* return_address = nullptr;
};

// One line per call, newest first: "  #0 trainer::step at /path/program+0x1234", the number for
// `addr2line -e /path/program`. With `interrupted`, what lies above that place (the handler) is
// left out. Calls that repeat themselves are told once, with their number.
void put_stack_trace(FixedText& to, const Interrupted* interrupted) noexcept;

struct Module {
  std::string_view path;
  uint64_t offset = 0;  // of the address, in the file
};

// The line of /proc/<pid>/maps that holds `address`, if it maps a file. Pure.
std::optional<Module> find_module(std::string_view maps, uint64_t address) noexcept;

}  // namespace cpprun::worker
