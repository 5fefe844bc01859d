// Activation checkpointing with dropout, under DistributedDataParallel; twins/checkpoint.py prints
// the same.
#include "cpprun/dist/process_group.hpp"
#include "cpprun/nn/checkpoint.hpp"
#include "cpprun/nn/parallel/distributed_data_parallel.hpp"
#include "cpprun/optim/autocast.hpp"
#include "tests/sdk/nn/nets.hpp"
#include "tests/sdk/support/cases.hpp"

namespace cpprun::test {
namespace {

using utils::checkpoint::checkpoint;
using utils::checkpoint::checkpoint_sequential;

int computations = 0;  // of blocks

struct DropBlock : torch::nn::Module {
  explicit DropBlock(int64_t width) {
    inner = register_module("inner", torch::nn::Linear(width, width));
    drop = register_module("drop", torch::nn::Dropout(0.4));
  }
  at::Tensor forward(const at::Tensor& x) {
    ++computations;
    return x + drop(torch::tanh(inner(x)));
  }
  torch::nn::Linear inner{nullptr};
  torch::nn::Dropout drop{nullptr};
};

struct Deep : torch::nn::Module {
  explicit Deep(bool checkpoints) : checkpoints_(checkpoints) {
    for (int i = 0; i < 3; ++i) {
      blocks.push_back(
          register_module("block" + std::to_string(i), std::make_shared<DropBlock>(12)));
    }
    last = register_module("last", torch::nn::Linear(12, 4));
  }
  at::Tensor forward(at::Tensor x) {
    for (const auto& block : blocks) {
      const auto run = [block](const at::Tensor& h) { return block->forward(h); };
      x = checkpoints_ ? checkpoint(run, x) : run(x);
    }
    return last(x);
  }
  bool checkpoints_;
  std::vector<std::shared_ptr<DropBlock>> blocks;
  torch::nn::Linear last{nullptr};
};

// Five blocks in a Sequential; no segments: without checkpoints.
struct Row : torch::nn::Module {
  explicit Row(int64_t segments) : segments_(segments) {
    for (int i = 0; i < 5; ++i) blocks->push_back(std::make_shared<DropBlock>(12));
    register_module("blocks", blocks);
    last = register_module("last", torch::nn::Linear(12, 4));
  }
  at::Tensor forward(const at::Tensor& x) {
    return last(segments_ == 0 ? blocks->forward(x) : checkpoint_sequential(blocks, segments_, x));
  }
  int64_t segments_;
  torch::nn::Sequential blocks;
  torch::nn::Linear last{nullptr};
};

template <class Net>
void train_net(const std::string& start, const std::shared_ptr<Net>& net, bool casts) {
  nn::parallel::DistributedDataParallel ddp(net);
  torch::manual_seed(20 + static_cast<uint64_t>(dist::get_rank()));  // of dropout
  torch::optim::SGD sgd(ddp.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  Batches batches(dist::get_rank());
  computations = 0;
  const std::string rank = std::to_string(dist::get_rank()) + " ";
  for (int step = 0; step < 5; ++step) {
    const Batch batch = batches.next();
    ddp.zero_grad();
    at::Tensor loss;
    {
      const amp::Autocast cast(at::kCPU, {.enabled = casts});
      loss = torch::mse_loss(ddp(batch.x), batch.y);
    }
    loss.backward();
    sgd.step();
    print_line(start + "loss " + rank + std::to_string(step) + " " + digits(loss.item<double>()));
  }
  print_line(start + "computations " + rank + std::to_string(computations));
  print_line(start + "end " + rank + std::to_string(hash_of(ddp.module())));
}

void train_deep(bool checkpoints, bool casts) {
  const std::string start =
      std::string(checkpoints ? "checkpoint " : "plain ") + (casts ? "cast " : "");
  torch::manual_seed(7);
  train_net(start, std::make_shared<Deep>(checkpoints), casts);
}

void train_row(int64_t segments) {
  torch::manual_seed(8);
  train_net("row " + std::to_string(segments) + " ", std::make_shared<Row>(segments), false);
}

}  // namespace

SDK_CASE(checkpoint) {
  const auto group = dist::init_process_group({.backend = "gloo"});
  train_deep(false, false);
  train_deep(true, false);
  train_deep(true, true);
  for (const int64_t segments : {0, 1, 2, 5}) train_row(segments);
  return 0;
}

}  // namespace cpprun::test
