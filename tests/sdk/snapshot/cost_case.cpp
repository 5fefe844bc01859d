// snapshot_cost MEBIBYTES: measures the cost of a save for the training, beside one memcpy of the
// same size in the same process; prints milliseconds. snapshot_saving HOW: saves after each of six
// steps, and prints how many milliseconds the training has waited for that.
#include <torch/nn/module.h>
#include <torch/serialize.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/snapshot/snapshot.hpp"
#include "cpprun/worker/agent_link.hpp"
#include "tests/sdk/support/cases.hpp"

namespace {

using namespace cpprun;

struct Large : torch::nn::Module {
  explicit Large(int64_t mebibytes) {
    constexpr int64_t kTensor = 16;  // MiB
    for (int64_t i = 0; i < mebibytes / kTensor; ++i) {
      register_parameter("p" + std::to_string(i), torch::rand({kTensor << 18}));
    }
  }
};

template <class F>
double milliseconds(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// Copies into touched memory, as the arena's is from its third save on.
double plain_copy(const torch::nn::Module& module) {
  std::vector<at::Tensor> into;
  for (const auto& each : module.parameters()) into.push_back(each.detach().clone());
  const auto from = module.parameters();
  return milliseconds([&] {
    for (size_t i = 0; i < into.size(); ++i) {
      std::memcpy(into[i].data_ptr(), from[i].const_data_ptr(), into[i].nbytes());
    }
  });
}

}  // namespace

SDK_CASE(snapshot_cost) {
  const auto group = dist::init_process_group_or_single({.backend = "gloo"});
  const auto module = std::make_shared<Large>(std::stol(args.at(0)));
  Snapshot snapshot({.dir = "cost", .keep = 1, .hints = false});
  snapshot.track(module);
  double pause = 0, rest = 0;
  for (int64_t step = 1; step <= 4; ++step) {  // two slots, each touched once
    pause = milliseconds([&] { snapshot.save_async(step); });
    rest = milliseconds([&] { snapshot.wait(); });
  }
  const double copy = plain_copy(*module);
  std::printf("rank %d pause %.1f copy %.1f writing %.1f\n", dist::get_rank(), pause, copy, rest);
  return 0;
}

SDK_CASE(snapshot_saving) {
  const auto group = dist::init_process_group_or_single({.backend = "gloo"});
  const auto module = std::make_shared<Large>(64);
  Snapshot snapshot({.dir = "saving", .keep = 1, .hints = false});
  snapshot.track(module);
  const std::string how = args.at(0);
  double saved = 0;
  int64_t step = 1;
  for (; step <= 6; ++step) {
    worker::heartbeat(step);
    saved += milliseconds([&] {
      if (how == "save") snapshot.save(step);
      if (how == "maybe_save") snapshot.maybe_save(step, {.every_steps = 1});
      if (how == "maybe_save") snapshot.wait();
      if (how == "by_other_means") {
        worker::heartbeat(step, worker::Phase::Saving);
        torch::save(module->parameters(), "own-" + std::to_string(dist::get_rank()) + ".pt");
      }
    });
  }
  worker::heartbeat(step);
  std::printf("rank %d saved %.1f\n", dist::get_rank(), saved);
  std::fflush(stdout);
  std::_Exit(0);  // the time until the exit counts as training, and leak checkers need a second
}
