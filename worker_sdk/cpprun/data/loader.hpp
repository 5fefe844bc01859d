// make_data_loader: torch's data loader with any data::Sampler.
//
//   auto sampler = std::make_shared<OwnSampler>(...);     // next, size, set_epoch, state
//   auto loader = data::make_data_loader(dataset.map(Stack<>()), sampler, 64);
//
// torch::data::make_data_loader requires a class derived from its Sampler<> and copies it; here the
// loader and the training loop share one object. LibTorch starts worker threads only if
// DataLoaderOptions asks for them. One thread. Python counterpart: torch.utils.data.DataLoader.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <torch/data/dataloader.h>
#include <torch/data/samplers/base.h>

#include "cpprun/data/sampler.hpp"

namespace cpprun::data {

// Makes a torch sampler of any data::Sampler. Copies refer to the same sampler.
template <Sampler S>
class SamplerAdapter : public torch::data::samplers::Sampler<> {
 public:
  explicit SamplerAdapter(std::shared_ptr<S> sampler) : sampler_(std::move(sampler)) {}

  // Starts a pass: calls the sampler's reset() if it has one.
  void reset(std::optional<size_t> = std::nullopt) override {
    if constexpr (requires(S & s) { s.reset(); }) sampler_->reset();
    is_over_ = false;
  }
  // An empty batch ends the pass, because torch's loaders do not accept one. After the end the
  // result stays empty: a loader's worker threads call next() again, and the sampler would start
  // another pass.
  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    if (is_over_) return std::nullopt;
    auto batch = sampler_->next(batch_size);
    is_over_ = !batch || batch->empty();
    return is_over_ ? std::nullopt : std::move(batch);
  }
  size_t size() const { return sampler_->size(); }

  // Call the sampler's own functions if it has them. Snapshots use its state() instead.
  void save(torch::serialize::OutputArchive& archive) const override {
    if constexpr (requires(const S& s) { s.save(archive); }) sampler_->save(archive);
  }
  void load(torch::serialize::InputArchive& archive) override {
    if constexpr (requires(S & s) { s.load(archive); }) sampler_->load(archive);
  }

 private:
  std::shared_ptr<S> sampler_;
  bool is_over_ = false;  // the current pass
};

// Returns a std::unique_ptr to a torch data loader over `dataset`, in the order of `*sampler`.
template <class Dataset, Sampler S>
auto make_data_loader(Dataset dataset, std::shared_ptr<S> sampler,
                      torch::data::DataLoaderOptions options) {
  return torch::data::make_data_loader(std::move(dataset), SamplerAdapter<S>(std::move(sampler)),
                                       std::move(options));
}

}  // namespace cpprun::data
