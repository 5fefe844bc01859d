// Reading of a worker's /proc files, from texts of the kernel.
#include "agent/process/diagnostics/process_sampler.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace cpprun::test {
namespace {

using State = WorkerObservation::State;

std::string status(const std::string& state, const std::string& tracer) {
  return "Name:\tState: T\nUmask:\t0022\nState:\t" + state + "\nTgid:\t7\nTracerPid:\t" + tracer +
         "\nUid:\t0\n";
}

TEST(WorkerSamples, DistinguishesStates) {
  EXPECT_EQ(parse_state(status("S (sleeping)", "0")), State::Going);
  EXPECT_EQ(parse_state(status("R (running)", "0")), State::Going);
  EXPECT_EQ(parse_state(status("D (disk sleep)", "0")), State::Blocked);
  EXPECT_EQ(parse_state(status("T (stopped)", "0")), State::Stopped);
  EXPECT_EQ(parse_state(status("t (tracing stop)", "4711")), State::Traced);
  EXPECT_EQ(parse_state(status("S (sleeping)", "4711")), State::Traced) << "under a debugger";
  EXPECT_EQ(parse_state(""), State::Going) << "it has ended: its exit status has more";
}

TEST(WorkerSamples, CountsCpuTimeFaultsAndBytes) {
  const std::string stat =
      "7 (a) b) S 1 7 7 0 -1 4194560 100 200 3 4 50 60 70 80 20 0 1 0 100 0 0 0";
  const std::string io = "rchar: 1000\nwchar: 10\nsyscr: 5\nread_bytes: 99\n";
  const ResourceUsage used = parse_usage(stat, io, 100);
  EXPECT_EQ(used.cpu, seconds(2.6));
  EXPECT_EQ(used.bytes, 1010u + 3 * 4096);
  EXPECT_EQ(parse_usage("", "", 100).bytes, 0u);
}

TEST(WorkerSamples, SamplesItsOwnProcess) {
  WorkerObservation sight;
  sight.pid = ::getpid();
  sample_process(sight);
  EXPECT_NE(sight.state, State::Stopped);
  EXPECT_GT(sight.bytes, 0u);
}

}  // namespace
}  // namespace cpprun::test
