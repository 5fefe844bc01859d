// Failures around DistributedDataParallel. Each case ends on all ranks with a named error.
#include <chrono>
#include <csignal>
#include <optional>
#include <stdexcept>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/nn/parallel/distributed_data_parallel.hpp"
#include "tests/sdk/nn/nets.hpp"
#include "tests/sdk/support/cases.hpp"

namespace cpprun::test {
namespace {

namespace parallel = nn::parallel;
using namespace std::chrono_literals;

struct Loose : torch::nn::Module {};

// One rank's model, by the name of its difference.
std::shared_ptr<Loose> odd_model(const std::string& what) {
  auto net = std::make_shared<Loose>();
  const bool swaps = what == "order";
  if (!swaps) net->register_parameter("weight", torch::zeros({4, 3}));
  net->register_parameter(
      what == "name" ? "gain" : "bias",
      torch::zeros({what == "shape" ? 5 : 4}, what == "dtype" ? at::kDouble : at::kFloat),
      what != "requires_grad");
  if (swaps) net->register_parameter("weight", torch::zeros({4, 3}));
  if (what == "more") net->register_parameter("extra", torch::zeros({1}));
  if (what == "buffer") net->register_buffer("count", torch::zeros({1}));
  return net;
}

void print_error(const std::exception& error) {
  std::string text = error.what();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  print_line("error " + std::to_string(dist::get_rank()) + " " + text);
}

int step(parallel::DistributedDataParallel<Mlp>& ddp, Batches& batches) {
  const Batch batch = batches.next();
  torch::mse_loss(ddp(batch.x), batch.y).backward();
  return 0;
}

}  // namespace

// WORD: the difference on rank 1.
SDK_CASE(ddp_different_models) {
  const auto group = dist::init_process_group({.backend = "gloo", .timeout = 20s});
  parallel::DdpOptions options;
  if (dist::get_rank() == 1 && args[0] == "option") options.find_unused_parameters = true;
  try {
    parallel::DistributedDataParallel ddp(odd_model(dist::get_rank() == 1 ? args[0] : ""), options);
  } catch (const dist::DistMismatchError& error) {
    print_error(error);
    return 0;
  }
  return 1;
}

// Rank 1 never wraps.
SDK_CASE(ddp_missing_rank) {
  const auto group = dist::init_process_group({.backend = "gloo", .timeout = 2s});
  if (dist::get_rank() == 1) {
    group.group().store().wait({"done"}, 60s);
    return 0;
  }
  try {
    parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  } catch (const dist::DistTimeoutError& error) {
    print_error(error);
    group.group().store().set("done", "1");
    return 0;
  }
  return 1;
}

// Rank 1 dies inside its third backward.
SDK_CASE(ddp_killed) {
  const auto group = dist::init_process_group({.backend = "gloo", .timeout = 20s});
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  Batches batches(dist::get_rank());
  try {
    for (int i = 0; i < 100; ++i) {
      if (i == 3 && dist::get_rank() == 1) {
        ddp.module().second->weight.register_hook([](const at::Tensor&) { std::raise(SIGKILL); });
      }
      step(ddp, batches);
    }
  } catch (const std::exception& error) {
    print_error(error);
    return 3;
  }
  return 1;
}

// Rank 1's forward throws once; it stops, and so must the others.
SDK_CASE(ddp_forward_throws) {
  const auto group = dist::init_process_group({.backend = "gloo", .timeout = 5s});
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  Batches batches(dist::get_rank());
  try {
    for (int i = 0; i < 3; ++i) {
      if (i == 2 && dist::get_rank() == 1) ddp(torch::zeros({2, 5}));
      step(ddp, batches);
    }
  } catch (const std::exception& error) {
    print_error(error);
    return 0;
  }
  return 1;
}

// Rank 1 has more batches, and no rank joins: rank 0 leaves.
SDK_CASE(ddp_uneven) {
  const auto group = dist::init_process_group({.backend = "gloo", .timeout = 5s});
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  Batches batches(dist::get_rank());
  try {
    for (int i = 0; i < 4 + 4 * dist::get_rank(); ++i) step(ddp, batches);
  } catch (const std::exception& error) {
    print_error(error);
  }
  return 0;
}

// Rank 1 is suspended and keeps its connections: only the timeout ends the others.
SDK_CASE(ddp_stalled) {
  const auto group = dist::init_process_group({.backend = "gloo", .timeout = 3s});
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  Batches batches(dist::get_rank());
  step(ddp, batches);
  if (dist::get_rank() == 1) {
    group.group().store().wait({"done"}, 60s);
    return 0;
  }
  try {
    step(ddp, batches);
  } catch (const std::exception& error) {
    print_error(error);
    group.group().store().set("done", "1");
    return 0;
  }
  return 1;
}

// The loss leaves out a head without find_unused_parameters.
SDK_CASE(ddp_unused) {
  const auto group = dist::init_process_group({.backend = "gloo", .timeout = 20s});
  parallel::DistributedDataParallel ddp(std::make_shared<Branches>());
  Batches batches(dist::get_rank());
  try {
    for (int i = 0; i < 2; ++i) {
      const Batch batch = batches.next();
      torch::mse_loss(ddp(batch.x, true), batch.y).backward();
    }
  } catch (const parallel::UnusedParametersError& error) {
    print_error(error);
    return 0;
  }
  return 1;
}

// Backward twice through one graph marks a parameter twice; its name is in the error.
SDK_CASE(ddp_backward_twice) {
  const auto group = dist::init_process_group({.backend = "gloo", .timeout = 20s});
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  Batches batches(dist::get_rank());
  const Batch batch = batches.next();
  const at::Tensor out = ddp(batch.x);
  try {
    ddp.module().third->bias.sum().backward();
    torch::mse_loss(out, batch.y).backward();
  } catch (const std::exception& error) {
    print_error(error);
    return 0;
  }
  return 1;
}

// Trains the module and not the wrapper, so that nothing averages; Python does not warn.
SDK_CASE(ddp_bypassed) {
  const auto group = dist::init_process_group({.backend = "gloo", .timeout = 20s});
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  torch::optim::SGD sgd(ddp.parameters(), 0.1);
  Batches batches(dist::get_rank());
  for (int i = 0; i < 3; ++i) {
    const Batch batch = batches.next();
    torch::mse_loss(ddp.module().forward(batch.x), batch.y).backward();
    sgd.step();
  }
  print_line("end " + std::to_string(hash_of(ddp.module())));
  return 0;
}

// Forward without backward, a group that ends before the module, graphs that outlive it: no error.
SDK_CASE(ddp_lifetimes) {
  at::Tensor kept;
  std::optional<parallel::NoSyncGuard> guard;
  {
    auto group = dist::init_process_group({.backend = "gloo", .timeout = 20s});
    parallel::DdpOptions options;
    options.static_graph = true;
    parallel::DistributedDataParallel ddp(std::make_shared<Mlp>(), options);
    Batches batches(dist::get_rank());
    ddp(batches.next().x);
    ddp(batches.next().x);
    kept = ddp(batches.next().x).sum();
    guard.emplace(ddp.no_sync());
    dist::destroy_process_group();
  }
  guard.reset();
  kept.backward();
  print_line("quiet");
  return 0;
}

}  // namespace cpprun::test
