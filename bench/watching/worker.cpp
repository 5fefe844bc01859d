// A worker with a hundred steps per second that measures the cost of reporting them:
//
//   watched_worker FOLDER    runs until FOLDER/end exists
//
// A step is 5 ms of work, and sleep for the rest of 10 ms. Every other block of steps reports like
// a trainer of the SDK: heartbeat() and count_collective(); the other blocks run the same loop
// without. At the end it writes FOLDER/rank-RANK: the numbers of both kinds of steps, and the
// nanoseconds of this thread's CPU time per step beside the work.
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "cpprun/worker/agent_link.hpp"

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStep = 10'000'000;
constexpr int64_t kWork = 5'000'000;
constexpr int64_t kBlock = 20;

int64_t now(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * kSecond + t.tv_nsec;
}

void sleep_until(int64_t at) {
  const timespec t{at / kSecond, at % kSecond};
  ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

// Uses a fixed amount of CPU time.
void work() {
  const int64_t until = now(CLOCK_THREAD_CPUTIME_ID) + kWork;
  while (now(CLOCK_THREAD_CPUTIME_ID) < until) {
  }
}

struct Sum {
  int64_t steps = 0;
  int64_t nanoseconds = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  const char* rank = std::getenv("RANK");
  cpprun::worker::report_ready();
  Sum with;
  Sum without;
  int64_t next = now(CLOCK_MONOTONIC);
  for (int64_t step = 0; ::access((folder + "/end").c_str(), F_OK) != 0; ++step) {
    work();
    const bool reports = step / kBlock % 2 == 0;
    const int64_t begin = now(CLOCK_THREAD_CPUTIME_ID);
    if (reports) {
      cpprun::worker::count_collective();
      cpprun::worker::heartbeat(step);
    }
    Sum& sum = reports ? with : without;
    sum.nanoseconds += now(CLOCK_THREAD_CPUTIME_ID) - begin;
    ++sum.steps;
    next += kStep;
    sleep_until(next);
  }
  std::ofstream out(folder + "/rank-" + (rank == nullptr ? "0" : rank));
  out << with.steps << ' ' << with.nanoseconds << ' ' << without.steps << ' ' << without.nanoseconds
      << '\n';
  return 0;
}
