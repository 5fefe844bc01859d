// DistributedDataParallel in six steps: cpprun --standalone --nproc_per_node=3 ./ex_six_steps
#include "cpprun/torch.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"
using namespace cpprun;

struct Net : torch::nn::Module {
  explicit Net(bool has_spare) {
    if (has_spare) register_module("spare", torch::nn::Linear(16, 3));  // never called
  }
  at::Tensor forward(const at::Tensor& points) { return last(torch::relu(first(points))); }
  torch::nn::Linear first{register_module("first", torch::nn::Linear(2, 16))};
  torch::nn::Linear last{register_module("last", torch::nn::Linear(16, 3))};
};

std::pair<at::Tensor, at::Tensor> make_data(uint64_t seed, int64_t size) {  // points, their centres
  auto random = at::detail::createCPUGenerator(seed);
  auto labels = torch::randint(0, 3, {size}, random, torch::kLong);
  auto centres = torch::tensor({0.F, 2.F, 2.F, -1.F, -2.F, -1.F}).view({3, 2});
  return {centres.index_select(0, labels) + 0.6 * torch::randn({size, 2}, random), labels};
}

void train(auto& model, data::DistributedSampler sampler, int batch_size) {
  const auto [points, labels] = make_data(1, 840);
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int epoch = 0; epoch < 5; ++epoch) {
    sampler.set_epoch(epoch);  // without it, each epoch repeats the order of the first
    while (auto batch = sampler.next(static_cast<size_t>(batch_size))) {
      auto rows = torch::tensor(std::vector<int64_t>(batch->begin(), batch->end()));
      optimizer.zero_grad();
      torch::cross_entropy_loss(model.forward(points.index({rows})), labels.take(rows)).backward();
      optimizer.step();
    }
  }
}

int main(int argc, char** argv) {
  return cpprun::main(argc, argv, [](Args args) {
    bool compares = false, has_spare = false, finds_unused = false;
    double tolerance = 1e-6;
    examples::Options("DistributedDataParallel in six steps.")
        .add("--compare-solo", compares, "also train in one process, and fail on a difference")
        .add("--tol", tolerance, "tolerated difference of a parameter")
        .add("--unused-branch", has_spare, "add a layer that is never used")
        .add("--find-unused", finds_unused, "let DDP detect such layers")
        .parse(args);
    // 1. Set up: rank, world size and rendezvous address come from the launcher's environment.
    auto group = dist::init_process_group_or_single({.backend = "gloo"});
    const int rank = dist::get_rank(), world = dist::get_world_size();
    auto step = [&](auto... text) { examples::print_line("[rank ", rank, "] step ", text...); };
    step("1: joined a group of ", world, dist::is_main_process() ? ", as its master" : "");
    // 2. Split the data: each rank gets its own part, in an order that changes every epoch.
    data::DistributedSampler sampler(840);
    step("2: has ", sampler.size(), " of 840 training samples");
    // 3. Wrap the model: DDP copies rank 0's parameters to all ranks and averages all gradients.
    torch::manual_seed(static_cast<uint64_t>(rank));
    nn::parallel::DistributedDataParallel ddp(std::make_shared<Net>(has_spare),
                                              {.find_unused_parameters = finds_unused});
    step("3: wrapped the model");
    // 4. Train as in one process, and test: each rank tests a part, and all_reduce sums the counts.
    train(ddp, sampler, 20);
    const auto [points, labels] = make_data(2, 300);
    const torch::NoGradGuard no_grad;  // without gradients, the module's own forward() is enough
    auto hits = (ddp.module().forward(points).argmax(1) == labels).slice(0, rank, 300, world).sum();
    dist::all_reduce(hits);
    step("4: trained; accuracy ", hits.item<double>() / 3, " %");
    // 5. Gather results, if needed: an object of each rank, on all ranks.
    step("5: gathered from ", dist::all_gather_object(rank).size(), " ranks");
    step("6: leaves the group");  // 6. Clean up: the guard destroys the group at the scope's end.
    if (!compares) return 0;
    const torch::AutoGradMode with_gradients(true);
    torch::manual_seed(0);
    Net solo(has_spare);  // starts with the same parameters as rank 0
    train(solo, data::DistributedSampler(840, {1, 0}), 20 * world);
    auto flat = &torch::nn::utils::parameters_to_vector;
    auto gap = (flat(solo.parameters()) - flat(ddp.parameters())).abs().max().item<double>();
    examples::print_line("[rank ", rank, "] differs from one process by ", gap);
    return gap <= tolerance ? 0 : 1;
  });
}
