// A worker written with the SDK that ends in a given way: sdk_worker HOW [RANK]
//
// Only RANK does it (without RANK, all ranks); the others return 0 immediately. HOW is a name of
// kEnds below. Tests look for the functions' names in stacks.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "cpprun/worker/agent_link.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/error_file.hpp"
#include "cpprun/worker/faults.hpp"
#include "cpprun/worker/main.hpp"

namespace {

namespace worker = cpprun::worker;

constexpr int kTrainingEpochs = 4;
// An unmapped address, hidden from the compiler.
volatile int* volatile unmapped = reinterpret_cast<volatile int*>(16);

struct OwnError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void throw_nested() {
  try {
    throw std::out_of_range("sample 7 of 5");
  } catch (...) {
    std::throw_with_nested(OwnError("training epoch 3 failed: \"ö\"\n"));
  }
}

// Neither inlined nor a tail call, so that it appears in the stack.
[[gnu::noinline]] int write_through(volatile int* target) {
  *target = 1;
  return *target + 1;
}

[[gnu::noinline]] int overflow_the_stack(volatile int* depth) {
  if (*depth < 0) return 0;
  volatile char room[4096];
  room[0] = static_cast<char>(*depth);
  *depth = *depth + 1;
  return overflow_the_stack(depth) + room[0];
}

void throw_own() { throw OwnError("no handler catches this"); }

[[gnu::noinline]] void break_a_promise(void (*may_throw)()) noexcept { may_throw(); }

[[gnu::noinline]] int jump_to_nowhere() {
  int (*volatile nowhere)() = nullptr;
  return nowhere() + 1;
}

// Loses the stack, and with it the return addresses.
void break_the_stack() {
#if defined(__x86_64__)
  asm volatile("mov $16, %%rsp\n push %%rax" ::: "memory");
#elif defined(__aarch64__)
  asm volatile("mov x9, #16\n mov sp, x9\n ldr x0, [sp]" ::: "x0", "x9", "memory");
#endif
}

void crash_in_two_threads() {
  std::atomic<int> waiting{2};
  const auto crash = [&] {
    --waiting;
    while (waiting.load() > 0) {
    }
    write_through(unmapped);
  };
  std::thread other(crash);
  crash();
  other.join();
}

void crash_in_a_child() {
  if (::fork() == 0) ::abort();
  while (::wait(nullptr) > 0) {
  }
}

// Rank 0 reports a lost peer and waits for its stop. Rank 1 fails in the second after that, since
// reports have timestamps of whole seconds.
void lose_a_peer() {
  const std::string mark = std::string(::getenv("MARKS")) + "/reported";
  if (worker::environment()->rank == 0) {
    worker::report_error("Connection reset by peer");
    ::close(::creat(mark.c_str(), 0644));
    ::pause();
  }
  while (::access(mark.c_str(), F_OK) != 0) ::poll(nullptr, 0, 5);
  const time_t reported = ::time(nullptr);
  while (::time(nullptr) == reported) ::poll(nullptr, 0, 5);
  throw OwnError("the cause of it all");
}

// Allocates as training steps do: big buffers, filled, and freed together. Prints the page faults.
void fill_buffers() {
  constexpr size_t kBytes = 16 << 20;
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  for (int step = 0; step < 10; ++step) {
    void* buffers[4];
    for (void*& buffer : buffers) buffer = ::memset(::malloc(kBytes), step, kBytes);
    asm volatile("" ::"r"(buffers) : "memory");
    for (void* buffer : buffers) ::free(buffer);
  }
  ::getrusage(RUSAGE_SELF, &after);
  ::printf("%ld\n", after.ru_minflt - before.ru_minflt);
}

// Every training epoch has two steps. Prints its progress.
void train() {
  for (int epoch = 0; epoch < kTrainingEpochs; ++epoch) {
    for (int step = 0; step < 2; ++step) worker::fault_point(epoch, step);
  }
  ::puts("trained");
}

// Prints that it listens, then waits for SIGTERM as a stop request.
void serve_until_stopped() {
  ::puts("serving");
  ::fflush(stdout);
  while (!worker::should_stop()) ::poll(nullptr, 0, 20);
  ::puts("saved");
}

void sleep_until_killed() {
  ::puts("sleeping");
  ::fflush(stdout);
  ::pause();
  ::puts("awake");
}

std::atomic<bool> is_running{true};

[[gnu::noinline]] void spin_for_ever() {
  while (is_running.load()) {
  }
}

void hang_in_a_step() {
  worker::heartbeat(5);
  spin_for_ever();
  ::puts("over");
}

const std::map<std::string, std::function<void()>> kEnds{
    {"spin", hang_in_a_step},
    {"return", [] {}},
    {"exception", [] { throw OwnError("no data for this rank"); }},
    {"nested", throw_nested},
    {"number", [] { throw 42; }},
    {"peer", [] { throw OwnError("[pair.cc:534] Connection closed by peer [127.0.0.1]:4242"); }},
    {"terminate", [] { break_a_promise(throw_own); }},
    {"bare_terminate", [] { std::terminate(); }},
    {"segfault", [] { ::printf("%d\n", write_through(unmapped)); }},
    {"thread_segfault", [] { std::thread([] { write_through(unmapped); }).join(); }},
    {"overflow",
     [] {
       volatile int depth = 0;
       ::printf("%d\n", overflow_the_stack(&depth));
     }},
    {"nowhere", [] { ::printf("%d\n", jump_to_nowhere()); }},
    {"broken_stack", break_the_stack},
    {"two_threads", crash_in_two_threads},
    {"abort", [] { ::abort(); }},
    {"divide", [] { ::raise(SIGFPE); }},
    {"child", crash_in_a_child},
    {"report",
     [] {
       worker::report_error("first words");
       throw OwnError("last words");
     }},
    {"lose_a_peer", lose_a_peer},
    {"fill_buffers", fill_buffers},
    {"train", train},
    {"serve", serve_until_stopped},
    {"sleep", sleep_until_killed},
};

}  // namespace

int main(int argc, char** argv) {
  const auto run = [](cpprun::Args args) {
    const auto end = kEnds.find(args.argc > 1 ? args.argv[1] : "return");
    if (end == kEnds.end()) throw std::invalid_argument("sdk_worker does not know this end");
    if (args.argc > 2 && ::atoi(args.argv[2]) != worker::environment()->rank) return 0;
    end->second();
    return 0;
  };
  const bool serves = argc > 1 && std::string(argv[1]) == "serve";
  return cpprun::main(argc, argv, run, {.handles_sigterm = serves});
}
