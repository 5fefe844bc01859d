// Compares the stacks of a node's workers, to find the worker that the others wait for: they wait
// in a collective, and it does not.
//
// Pure. Knows the formats of faulthandler (cpprun_worker), py-spy, gdb and the C++ SDK. It looks at
// the main thread only: the threads of a backend are the same in all workers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"

namespace cpprun::agent {

struct StackFrame {
  std::string function;
  std::string file{};  // of a Python frame; "" in a C++ frame
  std::string line{};

  bool is_python() const { return !file.empty(); }
  bool operator==(const StackFrame&) const = default;
};

using Stack = std::vector<StackFrame>;  // innermost frame first; empty: no stack is known

struct RankStack {
  Rank rank;
  Stack stack;
  // Of the main thread: the kernel's function in which it waits; empty: it runs, or none is known.
  std::string waits_in{};
};

struct StackComparison {
  std::optional<size_t> odd;  // index of the worker that the others wait for
  std::string why;            // ends the sentence about the worker; "": the stacks do not show it
};

// The main thread's frames in a stack as text.
Stack main_stack(std::string_view text);

// The kernel's function in a stack as text: RankStack::waits_in.
std::string waits_in(std::string_view text);

// The collective in which the thread waits: "barrier", or "a collective" where only C++ frames are
// known. nullopt: it does not wait in one.
std::optional<std::string> collective_of(const Stack& stack);

// Chooses a worker only where the others wait in collectives, and they are not the minority. Where
// the stacks do not show it, since there are none or since work.wait() has no frame of its own: the
// only worker whose main thread sleeps, while those of all others wait for another thread, as they
// do in a collective.
StackComparison compare_stacks(const std::vector<RankStack>& workers);

// "rank 3", "ranks 0, 2 and 5 more": at most `most` numbers.
std::string ranks_text(const std::vector<int64_t>& ranks, size_t most);

// "ranks 0, 2:" and the first frames, once for workers with equal stacks. Leaves out workers
// without a stack, and `shown` unless others have its stack.
std::string grouped_stacks(const std::vector<RankStack>& workers, size_t shown);

}  // namespace cpprun::agent
