// Uneven inputs: rank r has kSteps + 4 r batches. twins/ddp_join.py is the same in Python.
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/process_group.hpp"
#include "cpprun/nn/parallel/distributed_data_parallel.hpp"
#include "tests/sdk/nn/nets.hpp"
#include "tests/sdk/support/cases.hpp"

namespace cpprun::test {
namespace {

namespace parallel = nn::parallel;

constexpr int kSteps = 6;

std::string mode;

template <class Net>
int train(const parallel::DdpOptions& options, const parallel::JoinOptions& join,
          const std::optional<parallel::CommHook>& hook = {}) {
  torch::manual_seed(7);
  parallel::DistributedDataParallel ddp(std::make_shared<Net>(), options);
  if (hook) ddp.register_comm_hook(*hook);
  torch::optim::SGD sgd(ddp.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  const int rank = dist::get_rank();
  const std::string start = mode + " loss " + std::to_string(rank) + " ";
  Batches batches(rank);
  auto guard = ddp.join(join);
  for (int step = 0; step < kSteps + 4 * rank; ++step) {
    const Batch batch = batches.next();
    // The first of three steps only accumulates.
    const auto no_sync = ddp.no_sync_if(mode == "no_sync" && step % 3 == 0);
    if (mode != "no_sync" || step % 3 == 0) ddp.zero_grad();
    const at::Tensor loss = torch::mse_loss(ddp(batch.x), batch.y);
    loss.backward();
    if (mode != "no_sync" || step % 3 != 0) sgd.step();
    print_line(start + std::to_string(step) + " " + digits(loss.item<double>()));
  }
  guard.finish();
  print_line(mode + " end " + std::to_string(rank) + " " + std::to_string(hash_of(ddp.module())));
  return 0;
}

parallel::DdpOptions small() {
  parallel::DdpOptions options;
  options.bucket_cap_mb = 0.002;
  return options;
}

parallel::DdpOptions find_unused() {
  parallel::DdpOptions options;
  options.find_unused_parameters = true;
  return options;
}

const std::map<std::string, std::function<int()>>& modes() {
  static const std::map<std::string, std::function<int()>> all{
      {"join", [] { return train<Mlp>({}, {}); }},
      {"buckets", [] { return train<Mlp>(small(), {}); }},
      {"remaining", [] { return train<Mlp>(small(), {.divide_by_initial_world_size = false}); }},
      {"buffers", [] { return train<Normed>({}, {}); }},
      {"find_unused", [] { return train<Mlp>(find_unused(), {}); }},
      {"no_sync", [] { return train<Mlp>({}, {}); }},
      {"hook", [] { return train<Mlp>(small(), {}, parallel::fp16_compress_hook()); }},
  };
  return all;
}

}  // namespace

SDK_CASE(ddp_join) {
  const auto group = dist::init_process_group({.backend = "gloo"});
  for (const std::string& word : args) {
    mode = word;
    if (const int code = modes().at(word)()) return code;
  }
  return 0;
}

// The mean over the ranks of each rank's gradient on its own batch.
at::Tensor mean_gradient(parallel::DistributedDataParallel<Mlp>& ddp, const Batch& batch) {
  ddp.zero_grad();
  {
    const auto no_sync = ddp.no_sync_if(true);
    torch::mse_loss(ddp(batch.x), batch.y).backward();
  }
  at::Tensor gradient = ddp.module().first->weight.grad().clone();
  dist::all_reduce(gradient, dist::ReduceOp::AVG);
  return gradient;
}

void print_scale(const char* how, parallel::DistributedDataParallel<Mlp>& ddp, const Batch& batch) {
  const at::Tensor expected = mean_gradient(ddp, batch);
  ddp.zero_grad();
  torch::mse_loss(ddp(batch.x), batch.y).backward();
  const double scale = (ddp.module().first->weight.grad().norm() / expected.norm()).item<double>();
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", scale);
  print_line(std::string(how) + " " + std::to_string(dist::get_rank()) + " scale " + text);
}

// After a join that divided by the number of remaining ranks, gradients are means over all ranks
// again: after its end, after an early end, and after a program's own exception.
SDK_CASE(ddp_join_after) {
  const auto group = dist::init_process_group({.backend = "gloo"});
  const int rank = dist::get_rank();
  Batches batches(rank);
  for (const std::string how : {"finished", "terminated", "thrown"}) {
    parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
    const bool ends_early = how == "terminated";
    try {
      auto guard = ddp.join(
          {.divide_by_initial_world_size = false, .throw_on_early_termination = ends_early});
      const int steps = how == "thrown" ? 2 : 2 + rank;
      for (int step = 0; step < steps; ++step) {
        const Batch batch = batches.next();
        torch::mse_loss(ddp(batch.x), batch.y).backward();
      }
      if (how == "thrown") throw std::runtime_error("the program's own");
      guard.finish();
    } catch (const std::runtime_error&) {
    }
    print_scale(how.c_str(), ddp, batches.next());
  }
  return 0;
}

// All ranks end with an error as soon as rank 0 is out of data.
SDK_CASE(ddp_join_terminates) {
  const auto group = dist::init_process_group({.backend = "gloo"});
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  const int rank = dist::get_rank();
  Batches batches(rank);
  try {
    auto guard = ddp.join({.throw_on_early_termination = true});
    for (int step = 0; step < kSteps + 4 * rank; ++step) {
      const Batch batch = batches.next();
      torch::mse_loss(ddp(batch.x), batch.y).backward();
    }
    guard.finish();
  } catch (const parallel::JoinTerminatedError& error) {
    print_line("terminated " + std::to_string(rank) + " " + error.what());
    return 0;
  }
  return 1;
}

// The next forward throws the error of a guard's destructor.
SDK_CASE(ddp_join_destructor) {
  const auto group = dist::init_process_group({.backend = "gloo"});
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  Batches batches(dist::get_rank());
  {
    const auto guard = ddp.join({.throw_on_early_termination = true});
    for (int step = 0; step < 2 + dist::get_rank(); ++step) {
      try {
        const Batch batch = batches.next();
        torch::mse_loss(ddp(batch.x), batch.y).backward();
      } catch (const parallel::JoinTerminatedError&) {
        print_line("noticed");
        return 0;
      }
    }
  }
  try {
    ddp(batches.next().x);
  } catch (const parallel::JoinTerminatedError&) {
    print_line("kept");
    return 0;
  }
  return 1;
}

}  // namespace cpprun::test
