// Which worker the others wait for, by their stacks, in all formats that cpprun collects.
#include "agent/core/hangs/hang_stacks.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

using agent::RankStack;

// As agent/process/diagnostics/stack_collector.hpp returns them.
const std::string kSpyBarrier = R"text(rank 0 (local rank 0, pid 7): no heartbeats
  Process 7: /usr/bin/python3 train.py
  Python v3.11.2 (/usr/bin/python3.11)
  Thread 9 (idle): "Thread-1 (_pin_memory_loop)"
      wait (threading.py:324)
  Thread 7 (idle): "MainThread"
      barrier (torch/distributed/distributed_c10d.py:5037)
      _exception_logger.<locals>.wrapper (torch/distributed/c10d_logger.py:83)
      <module> (train.py:8)
  kernel: waits in futex_wait_queue
)text";
const std::string kSpyOutside = R"text(rank 1 (local rank 1, pid 8): no heartbeats
  Thread 8 (idle): "MainThread"
      load_next_batch (train.py:12)
      forward (torch/distributed/fsdp/fully_sharded_data_parallel.py:800)
      wrapper (torch/distributed/elastic/multiprocessing/errors/__init__.py:362)
  Thread 9 (idle): "Thread-1"
      barrier (torch/distributed/distributed_c10d.py:5037)
  kernel: waits in hrtimer_nanosleep
)text";
const std::string kSpyReduce = R"text(
  Thread 7 (idle): "MainThread"
      all_reduce (torch/distributed/distributed_c10d.py:3010)
      <module> (train.py:9)
)text";
const std::string kOwnBarrier = R"text(rank 0 (local rank 0, pid 7): step 3, 0 collectives
  Thread 0x00007f51a3fff6c0 (most recent call first):
    File "/usr/lib/python3.11/threading.py", line 324 in wait
  Current thread 0x00007f525d6c5040 (most recent call first):
    File "/x/site-packages/torch/distributed/distributed_c10d.py", line 5037 in barrier
    File "/x/site-packages/torch/distributed/c10d_logger.py", line 83 in wrapper
    File "/home/a b/train.py", line 8 in <module>
  kernel: waits in futex_wait_queue
)text";
const std::string kOwnOutside = R"text(
  Current thread 0x00007f525d6c5040 (most recent call first):
    File "/home/a b/train.py", line 12 in load_next_batch
    File "/home/a b/train.py", line 17 in <module>
)text";
const std::string kGdbBarrier = R"text(
  Thread 2 (Thread 0x7fe02efff6c0 (LWP 36) "python"):
  #0  epoll_wait (epfd=3) at ../sysdeps/unix/sysv/linux/epoll_wait.c:30
  #1  0x00007fe09b6b1a9b in gloo::transport::tcp::Loop::run() () from /x/libtorch_cpu.so
  Thread 1 (Thread 0x7fe0d69f4040 (LWP 30) "python"):
  #0  __futex_abstimed_wait (private=0) at ./nptl/futex-internal.c:57
  #1  0x00007fe09b6b1a9b in c10d::Work::wait(std::chrono::duration<long>) () from /x/libtorch.so
  #2  0x00000000006512e4 in _PyRun_AnyFileObject ()
)text";
const std::string kGdbOutside = R"text(
  Thread 2 (Thread 0x7fe02efff6c0 (LWP 36) "python"):
  #0  0x00007fe09b6b1a9b in gloo::transport::tcp::Loop::run() () from /x/libtorch_cpu.so
  Thread 1 (Thread 0x7fe0d69f4040 (LWP 30) "python"):
  #0  0x00007fe0d6a7af7b in clock_nanosleep () from /lib/libc.so.6
  #1  0x00000000006512e4 in _PyRun_AnyFileObject ()
)text";
const std::string kSdkBarrier = R"text(
  #0 epoll_wait+0x12 at /lib/libc.so.6+0x10f9e6
  #1 _ZN4c10d16ProcessGroupGloo7barrierEv+0x30 at /x/libtorch_cpu.so+0x40
  #2 main+0x9 at /x/digits+0x99
)text";
const std::string kSdkOutside = R"text(
  #0 clock_nanosleep+0x12 at /lib/libc.so.6+0x10f9e6
  #1 main+0x9 at /x/digits+0x99
)text";
const std::string kNone =
    "(no stack: neither its own, nor by py-spy or gdb)\n kernel: waits in x\n";

std::vector<RankStack> workers(const std::vector<std::string>& texts) {
  std::vector<RankStack> made;
  for (size_t i = 0; i < texts.size(); ++i) {
    made.push_back({Rank(static_cast<int64_t>(i) + 4), agent::main_stack(texts[i])});
  }
  return made;
}

agent::StackComparison compare(const std::vector<std::string>& texts) {
  return agent::compare_stacks(workers(texts));
}

TEST(HangStacks, TheRankOutsideTheCollectiveIsChosenInPythonStacks) {
  for (const auto& [waits, is_outside] :
       {std::pair{kSpyBarrier, kSpyOutside}, {kOwnBarrier, kOwnOutside}}) {
    const agent::StackComparison found = compare({waits, waits, is_outside});
    EXPECT_EQ(found.odd, 2U);
    EXPECT_EQ(found.why, "it is in load_next_batch (train.py:12), the others wait in barrier");
    EXPECT_EQ(compare({is_outside, waits}).odd, 0U);
  }
}

TEST(HangStacks, TheRankOutsideTheCollectiveIsChosenInCppStacks) {
  for (const auto& [waits, is_outside] :
       {std::pair{kGdbBarrier, kGdbOutside}, {kSdkBarrier, kSdkOutside}}) {
    const agent::StackComparison found = compare({waits, is_outside, waits});
    EXPECT_EQ(found.odd, 1U);
    EXPECT_EQ(found.why, "it is in clock_nanosleep, the others wait in a collective");
  }
}

TEST(HangStacks, StacksOfDifferentFormatsAreComparable) {
  EXPECT_EQ(compare({kSpyBarrier, kOwnOutside}).odd, 1U);
  EXPECT_EQ(compare({kGdbOutside, kSpyBarrier}).odd, 0U);
}

TEST(HangStacks, NothingIsChosenWhereStacksAreAlike) {
  EXPECT_EQ(compare({}).odd, std::nullopt);
  EXPECT_EQ(compare({kNone, kNone}).odd, std::nullopt);
  EXPECT_EQ(compare({kNone, kSpyBarrier}).odd, std::nullopt);
  EXPECT_EQ(compare({kNone, kSpyBarrier}).why, "");
  EXPECT_EQ(compare({kOwnOutside, kOwnOutside}).why, "");
  EXPECT_EQ(compare({kOwnOutside, kSpyOutside, kOwnBarrier}).odd, std::nullopt);
  const agent::StackComparison all_wait = compare({kOwnBarrier, kSpyBarrier});
  EXPECT_EQ(all_wait.odd, std::nullopt);
  EXPECT_EQ(all_wait.why, "all workers of this node wait in barrier");
}

// As kernel_view() in stack_collector.cpp writes it.
std::string kernel(const std::string& channel) {
  return "(no stack: neither its own, nor by py-spy or gdb)\n  kernel: waits in " + channel +
         "\n  [<0>] do_syscall_64+0x71/0x280\n";
}

agent::StackComparison compare_in_kernel(const std::vector<std::string>& texts) {
  std::vector<RankStack> made = workers(texts);
  for (size_t i = 0; i < texts.size(); ++i) made[i].waits_in = agent::waits_in(texts[i]);
  return agent::compare_stacks(made);
}

TEST(HangStacks, WithoutStacksTheRankThatSleepsIsChosen) {
  const std::string waits = kernel("futex_do_wait"), sleeps = kernel("hrtimer_nanosleep");
  const agent::StackComparison found = compare_in_kernel({waits, sleeps, waits});
  EXPECT_EQ(found.odd, 1U);
  EXPECT_EQ(found.why,
            "it waits in hrtimer_nanosleep in the kernel, the others for threads of their own, as "
            "in a collective");
  EXPECT_EQ(compare_in_kernel({waits, sleeps}).odd, 1U);
}

// work.wait() has no Python frame, so these stacks are outside of any collective as well.
TEST(HangStacks, OfRanksWithoutAFrameOfACollectiveTheOneThatSleepsIsChosen) {
  const std::string waits = kOwnOutside + "  kernel: waits in futex_wait_queue\n";
  const std::string sleeps = kOwnOutside + "  kernel: waits in hrtimer_nanosleep\n";
  EXPECT_EQ(compare_in_kernel({sleeps, waits, waits}).odd, 0U);
}

TEST(HangStacks, NothingIsChosenWhereTheKernelShowsNoDifference) {
  const std::string waits = kernel("futex_do_wait"), sleeps = kernel("hrtimer_nanosleep");
  const std::string runs = kernel("nothing that the kernel names");
  EXPECT_EQ(compare_in_kernel({waits, waits}).odd, std::nullopt);
  EXPECT_EQ(compare_in_kernel({sleeps, sleeps, waits}).odd, std::nullopt);
  EXPECT_EQ(compare_in_kernel({waits, runs, waits}).odd, std::nullopt);
  EXPECT_EQ(compare_in_kernel({sleeps}).odd, std::nullopt);
}

TEST(HangStacks, SeveralRanksOutsideAreAllNamed) {
  const agent::StackComparison found =
      compare({kOwnBarrier, kOwnOutside, kOwnBarrier, kOwnOutside});
  EXPECT_EQ(found.odd, 1U);
  EXPECT_EQ(found.why,
            "it is in load_next_batch (train.py:12); ranks 5, 7 are in no collective, the others "
            "wait in barrier");
}

TEST(HangStacks, TheOnlyRankInAnotherCollectiveIsChosen) {
  const agent::StackComparison found = compare({kSpyBarrier, kSpyReduce, kSpyBarrier});
  EXPECT_EQ(found.odd, 1U);
  EXPECT_EQ(found.why, "it waits in all_reduce, the others in barrier");
  EXPECT_EQ(compare({kSpyBarrier, kSpyReduce}).odd, std::nullopt);
}

TEST(HangStacks, DdpsBackwardWaitsForTheOthers) {
  const std::string backward = R"text(
  Thread 7 (idle): "MainThread"
      _engine_run_backward (torch/autograd/graph.py:865)
      backward (torch/autograd/__init__.py:365)
      <module> (train.py:9)
)text";
  EXPECT_EQ(agent::collective_of(agent::main_stack(backward)), "backward");
  EXPECT_EQ(compare({backward, kSpyOutside}).odd, 1U);
}

TEST(HangStacks, EqualStacksAreGrouped) {
  const std::vector<RankStack> all =
      workers({kSpyBarrier, kSpyOutside, kSpyBarrier, kNone, kSpyReduce, kSpyBarrier});
  EXPECT_EQ(agent::grouped_stacks(all, 1),
            "\nranks 4, 6, 9:"
            "\n    barrier (distributed_c10d.py:5037)"
            "\n    _exception_logger.<locals>.wrapper (c10d_logger.py:83)"
            "\n    <module> (train.py:8)"
            "\nrank 8:"
            "\n    all_reduce (distributed_c10d.py:3010)"
            "\n    <module> (train.py:9)");
  EXPECT_EQ(agent::grouped_stacks(workers({kNone, kNone}), 0), "");
}

}  // namespace
}  // namespace cpprun::test
