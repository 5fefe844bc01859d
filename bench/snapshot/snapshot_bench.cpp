// One rank of a job with a state of any size. Prints a line of JSON per result.
//
//   snapshot_bench pause DIR MIB TIMES [N]    # the cost of save_async, and of a plain copy
//   snapshot_bench train DIR MIB SECONDS      # steps per second with and without saves, in turns
//   snapshot_bench resume DIR MIB             # saves and dies; when restarted, times resuming
//
// The state is a model of MIB mebibytes in N (64) parameters, the same on all ranks. They are not
// part of the steps of `train`, which are small, so that saves cost them only CPU time.
#include <sys/resource.h>
#include <time.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cpprun/torch.hpp"
#include "cpprun/worker/environment.hpp"

namespace cpprun::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kMiB = 1 << 20;
constexpr auto kSaveEvery = std::chrono::seconds(2);
constexpr int kTurns = 10;  // with saves; turns without are between, before and after them

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// CPU time instead of wall time: valid on a busy machine too.
double thread_cpu() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }
double process_cpu() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

void print(const nlohmann::json& line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

struct State : torch::nn::Module {
  State(int64_t mib, int64_t count) {
    const int64_t each = mib * kMiB / count / static_cast<int64_t>(sizeof(float));
    for (int64_t i = 0; i < count; ++i) {
      register_parameter("piece" + std::to_string(i), torch::rand({each}), false);
    }
  }
};

// Copies a given size into memory that was touched before, as staging does.
class PlainCopy {
 public:
  explicit PlainCopy(int64_t bytes)
      : from_(static_cast<size_t>(bytes), 1), to_(static_cast<size_t>(bytes), 2) {}
  double seconds() {
    const auto start = Clock::now();
    std::memcpy(to_.data(), from_.data(), from_.size());
    from_[0] = to_[to_.size() / 2];  // keeps the compiler from removing the copy
    return seconds_since(start);
  }

 private:
  std::vector<char> from_, to_;
};

// Touches both slots of the arena: the first access to memory costs more than the rest of a save.
int64_t touch_arena(Snapshot& snapshot) {
  for (int64_t step : {0, 1}) snapshot.save(step);
  return 1;
}

void pause(Snapshot& snapshot, int64_t mib, int times) {
  PlainCopy copy(mib * kMiB / dist::get_world_size());  // a rank stages only its shard
  int64_t step = touch_arena(snapshot);
  for (int i = 0; i < times; ++i) {
    dist::barrier();
    const double before_copy = thread_cpu();
    const double copied = copy.seconds();
    const double copy_cpu = thread_cpu() - before_copy;
    dist::barrier();
    const auto start = Clock::now();
    const double before = thread_cpu(), before_save = process_cpu();
    const bool is_begun = snapshot.save_async(++step);
    const double paused = seconds_since(start);
    const double pause_cpu = thread_cpu() - before;
    const bool is_saved = snapshot.wait();
    print({{"pause_s", paused},
           {"copy_s", copied},
           {"whole_s", seconds_since(start)},
           {"pause_cpu_s", pause_cpu},
           {"copy_cpu_s", copy_cpu},
           {"save_cpu_s", process_cpu() - before_save},
           {"is_saved", is_begun && is_saved}});
  }
}

// Steps of some milliseconds, in lockstep on all ranks.
class Steps {
 public:
  void run() {
    auto loss = torch::matmul(weights_, weights_).mean().view({1});
    dist::all_reduce(loss);
  }

 private:
  at::Tensor weights_ = torch::rand({384, 384});
};

// Rank 0's clock decides, so that all ranks take the same number of steps.
bool is_over(Clock::time_point start, double seconds) {
  auto over = torch::tensor({seconds_since(start) >= seconds ? 1.0F : 0.0F});
  dist::broadcast(over, 0);
  return over.item<float>() > 0;
}

void train(Snapshot& snapshot, double seconds) {
  Steps steps;
  int64_t step = touch_arena(snapshot);
  for (int turn = 0; turn <= 2 * kTurns; ++turn) {
    const bool saves = turn % 2 == 1;
    const auto start = Clock::now();
    const double before = process_cpu();
    int64_t taken = 0, saved = 0;
    do {
      for (int i = 0; i < 10; ++i, ++taken) {
        steps.run();
        if (saves && snapshot.maybe_save(++step, {.every = kSaveEvery})) ++saved;
      }
    } while (!is_over(start, seconds));
    const double rate = static_cast<double>(taken) / seconds_since(start);
    snapshot.wait();
    const double cpu = (process_cpu() - before) / static_cast<double>(taken);
    if (!dist::is_main_process()) continue;
    print({{"saves", saves}, {"steps_per_s", rate}, {"cpu_s_per_step", cpu}, {"saved", saved}});
  }
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

void resume(Snapshot& snapshot) {
  dist::barrier();  // the time must not depend on when each rank has made its model
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  const auto start = Clock::now();
  const Resumed from = snapshot.resume();
  const double taken = seconds_since(start);
  ::getrusage(RUSAGE_SELF, &after);
  print({{"from", name(from.source)},
         {"resume_s", taken},
         {"user_s", seconds_of(after.ru_utime) - seconds_of(before.ru_utime)},
         {"system_s", seconds_of(after.ru_stime) - seconds_of(before.ru_stime)},
         {"faults", after.ru_minflt - before.ru_minflt}});
  if (worker::environment()->restart_count > 0 || from.source == SnapshotSource::Disk) return;
  snapshot.save(1);
  dist::barrier();
  if (dist::is_main_process()) std::raise(SIGKILL);
}

int run(Args args) {
  if (args.argc < 4) {
    std::fprintf(stderr, "usage: snapshot_bench pause|train|resume DIR MIB [TIMES|SECONDS]\n");
    return 2;
  }
  const std::string what = args.argv[1];
  const int64_t mib = std::atoll(args.argv[3]);
  auto group = dist::init_process_group({.backend = "gloo"});
  torch::manual_seed(0);
  auto state = std::make_shared<State>(mib, args.argc > 5 ? std::atoll(args.argv[5]) : 64);
  Snapshot snapshot({.dir = args.argv[2], .keep = 1, .hints = false});
  snapshot.track("model", *state);
  if (what == "pause") {
    pause(snapshot, mib, std::atoi(args.argv[4]));
  } else if (what == "train") {
    train(snapshot, std::atof(args.argv[4]));
  } else {
    resume(snapshot);
  }
  return 0;
}

}  // namespace
}  // namespace cpprun::bench

int main(int argc, char** argv) { return cpprun::main(argc, argv, cpprun::bench::run); }
