/// @file
/// make_data_loader: torch's data loader with any data::Sampler, and with an exact position.
///
///     data::DistributedSampler sampler(dataset.size().value());
///     auto loader = data::make_data_loader(dataset.map(Stack<>()), sampler, 64);
///     for (auto& batch : *loader) ...
///
/// torch::data::make_data_loader requires a class derived from its Sampler<> and copies it; here
/// the loader and the training loop share one object. With worker threads
/// (DataLoaderOptions::workers) a loader asks for indices several batches ahead. This one reports
/// to a sampler that has mark_consumed() which of them the loop has got, so that a snapshot that is
/// saved in the loop, after the step of a batch, continues with the next batch. For that, batches
/// must keep their order (DataLoaderOptions::enforce_ordering, the default). One thread. Python
/// counterpart: torch.utils.data.DataLoader; torchdata's StatefulDataLoader counts in the same way.
#pragma once

#include <cstddef>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <torch/data/dataloader.h>
#include <torch/data/samplers/base.h>

#include "cpprun/data/distributed_sampler.hpp"
#include "cpprun/data/sampler.hpp"

namespace cpprun::data {

namespace detail {
// Lengths of the batches of indices that the loader has asked for and the loop has not got.
using BatchesAhead = std::deque<size_t>;
}  // namespace detail

/// A torch sampler over any data::Sampler, for torch's loaders. Copies refer to the same sampler.
template <Sampler S>
class SamplerAdapter : public torch::data::samplers::Sampler<> {
 public:
  /// `ahead`: counts the batches that the loader has asked for; null: nothing is counted.
  /// make_data_loader() passes it to the CountingLoader too.
  explicit SamplerAdapter(std::shared_ptr<S> sampler,
                          std::shared_ptr<detail::BatchesAhead> ahead = {})
      : sampler_(std::move(sampler)), ahead_(std::move(ahead)) {}

  /// Starts a pass: calls the sampler's reset() if it has one.
  void reset(std::optional<size_t> = std::nullopt) override {
    if constexpr (requires(S & s) { s.reset(); }) sampler_->reset();
    is_over_ = false;
    if (ahead_) ahead_->clear();
  }
  /// An empty batch ends the pass, because torch's loaders do not accept one. After the end the
  /// result stays empty: a loader's worker threads call next() again, and the sampler would start
  /// another pass.
  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    if (is_over_) return std::nullopt;
    auto batch = sampler_->next(batch_size);
    is_over_ = !batch || batch->empty();
    if (ahead_ && !is_over_) ahead_->push_back(batch->size());
    return is_over_ ? std::nullopt : std::move(batch);
  }
  /// Samples of this rank in a pass.
  size_t size() const { return sampler_->size(); }

  /// @{
  /// Call the sampler's own save() and load() if it has them; else do nothing. Snapshots use its
  /// state() instead.
  void save(torch::serialize::OutputArchive& archive) const override {
    if constexpr (requires(const S& s) { s.save(archive); }) sampler_->save(archive);
  }
  void load(torch::serialize::InputArchive& archive) override {
    if constexpr (requires(S & s) { s.load(archive); }) sampler_->load(archive);
  }
  /// @}

 private:
  std::shared_ptr<S> sampler_;
  std::shared_ptr<detail::BatchesAhead> ahead_;  // may be null
  bool is_over_ = false;                         // the current pass
};

/// A torch data loader that reports to its sampler which batches the loop has got. `Loader`:
/// torch's loader. make_data_loader() makes it. One thread uses it.
template <class Loader, Sampler S>
class CountingLoader {
  using Inner = decltype(std::declval<Loader&>().begin());

 public:
  /// The position of a loop over the loader. It counts a batch at the first access to it.
  class Iterator {
   public:
    /// @{
    /// Member types of a std::input_iterator.
    using iterator_category = std::input_iterator_tag;
    using value_type = typename Inner::value_type;
    using difference_type = std::ptrdiff_t;
    using pointer = value_type*;
    using reference = value_type&;
    /// @}

    /// For begin() and end(). The loader must outlive the iterator.
    Iterator(Inner inner, CountingLoader* loader) : inner_(std::move(inner)), loader_(loader) {}
    /// @{
    /// The current batch of torch's loader. The first access calls the sampler's mark_consumed().
    reference operator*() {
      reference batch = *inner_;
      if (!std::exchange(is_counted_, true)) loader_->count_batch();
      return batch;
    }
    pointer operator->() { return &**this; }
    /// @}
    /// Gets the next batch; counts the current one if the loop has not accessed it.
    Iterator& operator++() {
      if (!std::exchange(is_counted_, true)) loader_->count_batch();
      ++inner_;
      is_counted_ = false;
      return *this;
    }
    /// Equal if both are at the end of a pass, or are the same position of torch's loader.
    bool operator==(const Iterator& other) const { return inner_ == other.inner_; }

   private:
    Inner inner_;
    CountingLoader* loader_;
    bool is_counted_ = false;  // the current batch
  };

  /// `loader` draws from a SamplerAdapter of `sampler` that has the same `ahead`.
  CountingLoader(std::unique_ptr<Loader> loader, std::shared_ptr<S> sampler,
                 std::shared_ptr<detail::BatchesAhead> ahead)
      : loader_(std::move(loader)), sampler_(std::move(sampler)), ahead_(std::move(ahead)) {}

  /// Starts a pass. Iterators must not outlive the loader.
  Iterator begin() {
    Inner inner = loader_->begin();
    if constexpr (MarksConsumed<S>) sampler_->mark_consumed(0);  // from here on, marks count
    return Iterator(std::move(inner), this);
  }
  /// The end of a pass.
  Iterator end() { return Iterator(loader_->end(), this); }
  void join() { loader_->join(); }  ///< ends the worker threads
  /// The options of torch's loader: batch size, worker threads, order.
  const torch::data::FullDataLoaderOptions& options() const { return loader_->options(); }

 private:
  void count_batch() {
    if (ahead_->empty()) return;  // a data set that gives batches of its own
    if constexpr (MarksConsumed<S>) sampler_->mark_consumed(ahead_->front());
    ahead_->pop_front();
  }

  std::unique_ptr<Loader> loader_;
  std::shared_ptr<S> sampler_;
  std::shared_ptr<detail::BatchesAhead> ahead_;
};

/// Returns a std::unique_ptr to a CountingLoader over `dataset`, in the order of `*sampler`.
template <class Dataset, Sampler S>
auto make_data_loader(Dataset dataset, std::shared_ptr<S> sampler,
                      torch::data::DataLoaderOptions options) {
  auto ahead = std::make_shared<detail::BatchesAhead>();
  auto loader = torch::data::make_data_loader(std::move(dataset), SamplerAdapter<S>(sampler, ahead),
                                              std::move(options));
  using Loader = typename decltype(loader)::element_type;
  return std::make_unique<CountingLoader<Loader, S>>(std::move(loader), std::move(sampler),
                                                     std::move(ahead));
}

/// The same with a DistributedSampler by value: copies of it share their state.
template <class Dataset>
auto make_data_loader(Dataset dataset, const DistributedSampler& sampler,
                      torch::data::DataLoaderOptions options) {
  return make_data_loader(std::move(dataset), std::make_shared<DistributedSampler>(sampler),
                          std::move(options));
}

}  // namespace cpprun::data
