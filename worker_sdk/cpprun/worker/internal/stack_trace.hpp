// The stack of the calling thread as text, for reports. Safe in signal handlers: reads /proc and
// the program's files, allocates nothing. One thread at a time, because it works in static memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cpprun/worker/internal/fixed_text.hpp"
#include "rendezvous/protocol/worker/worker_page.hpp"

namespace cpprun::worker {

// Loads the library that walks the stack, which a signal handler must not do. Call it once before.
void prepare_stack_trace();

// Where a signal interrupted the thread.
struct Interrupted {
  uintptr_t program_counter = 0;
  // Address of the return address. Valid only after a jump to an invalid address.
  const uintptr_t* return_address = nullptr;
};
// From the third argument of a signal handler.
Interrupted interrupted_at(const void* context) noexcept;

// Writes one line per call, newest first: "  #0 trainer::step at /path/program+0x1234", where the
// number is for `addr2line -e /path/program`. `interrupted` skips the frames above that place (the
// signal handler). A frame that repeats is written once, with a count.
void put_stack_trace(FixedText& to, const Interrupted* interrupted) noexcept;

struct Module {
  std::string_view path;
  uint64_t offset = 0;  // of the address, in the file
};

// The entry of /proc/<pid>/maps that contains `address`, if it maps a file. Pure.
std::optional<Module> find_module(std::string_view maps, uint64_t address) noexcept;

// Lets the agent collect the stack of a hanging worker before it kills it: creates a file, installs
// a handler of kStackSignal that writes the main thread's stack into it, and publishes both in
// `page`. Call it once. Does nothing if there is no descriptor left, or if the program handles the
// signal itself.
void publish_stack_file(WorkerPage& page);

}  // namespace cpprun::worker
