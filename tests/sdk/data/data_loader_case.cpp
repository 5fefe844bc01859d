// data_loader WORKERS: the batches of two epochs; twins/data_loader.py prints the same.
#include <torch/torch.h>

#include <iostream>

#include "cpprun/data/data_loader.hpp"
#include "tests/sdk/support/cases.hpp"

SDK_CASE(data_loader) {
  using namespace cpprun;
  for (const bool drops : {false, true}) {
    for (int rank = 0; rank < 3; ++rank) {
      data::DistributedSampler sampler(50, {.num_replicas = 3, .rank = rank, .seed = 4});
      const at::Tensor x = torch::arange(50), y = torch::arange(100).view({50, 2});
      data::DataLoader loader(
          data::TensorDataset({x, y}), sampler,
          {.batch_size = 4, .num_workers = std::stoul(args.at(0)), .drop_last = drops});
      std::cout << loader.size() << '\n';
      for (int64_t epoch = 0; epoch < 2; ++epoch) {
        sampler.set_epoch(epoch);
        for (auto& batch : loader) {
          std::cout << rank << ' ' << epoch;
          for (int64_t i = 0; i < batch[0].size(0); ++i) {
            std::cout << ' ' << batch[0][i].item<int64_t>() << ':'
                      << batch[1][i][1].item<int64_t>();
          }
          std::cout << '\n';
        }
      }
    }
  }
  return 0;
}
