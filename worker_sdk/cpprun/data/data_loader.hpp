/// @file
/// DataLoader: batches of tensors, loaded ahead of the loop. Python counterpart:
/// torch.utils.data.DataLoader and TensorDataset; the position is exact, as torchdata's
/// StatefulDataLoader's.
///
///     data::DistributedSampler sampler(1000);
///     data::DataLoader loader(data::TensorDataset({x, y}), sampler, {.batch_size = 8});
///     for (auto& batch : loader) loss(ddp(batch[0]), batch[1]).backward();
///
/// With num_workers threads, batches are loaded while the loop computes. The sampler counts a batch
/// when the loop gets it, not when it is loaded, so a snapshot that is saved in the loop continues
/// with the next batch. Any data::Sampler; without mark_consumed() use num_workers = 0 for that.
///
/// A data set of your own has `std::vector<at::Tensor> get_batch(const at::Tensor& indices) const`
/// (an int64 vector on the CPU), called from several threads at once, and `size_t size() const`.
/// What it throws reaches the loop. One thread uses the loader. The loader keeps data set and
/// sampler.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/data/distributed_sampler.hpp"
#include "cpprun/data/sampler.hpp"

namespace cpprun::data {

/// Tensors with the same first dimension; a batch has rows of each of them.
class TensorDataset {
 public:
  /// Throws std::invalid_argument for tensors of different lengths, or none.
  explicit TensorDataset(std::vector<at::Tensor> tensors);
  /// Length of the tensors' first dimension.
  size_t size() const;
  /// The rows `indices` (int64) of each tensor, in this order, as copies on the tensor's device.
  std::vector<at::Tensor> get_batch(const at::Tensor& indices) const;

 private:
  std::vector<at::Tensor> tensors_;
};

/// A data set that DataLoader takes: a const get_batch(indices), which returns tensors, and a const
/// size().
template <class D>
concept BatchDataset = requires(const D& dataset, const at::Tensor& indices) {
  { dataset.get_batch(indices) } -> std::convertible_to<std::vector<at::Tensor>>;
  { dataset.size() } -> std::convertible_to<size_t>;
};

/// Options of DataLoader, with Python's names and defaults, and `device` in addition.
struct DataLoaderOptions {
  size_t batch_size = 1;                   ///< samples per batch of this rank; at least 1
  size_t num_workers = 0;                  ///< threads that load; 0: the loop loads
  size_t prefetch_factor = 2;              ///< batches loaded ahead, per worker
  bool drop_last = false;                  ///< leave out the last batch if it is smaller
  bool pin_memory = false;                 ///< where there is a GPU: copies to it need not wait
  std::optional<c10::Device> device = {};  ///< copy batches to it, without waiting if pinned
};

/// Batches of a data set in the order of a sampler, loaded ahead of the loop. Python counterpart:
/// torch.utils.data.DataLoader. One thread uses it; it keeps the data set and the sampler.
class DataLoader {
 public:
  /// What get_batch returned: with a TensorDataset one tensor for each of its tensors, in their
  /// order.
  using Batch = std::vector<at::Tensor>;

  /// The position of a range-for loop over the loader. All iterators of one loader share one
  /// position.
  class Iterator {
   public:
    /// @{
    /// Member types of a std::input_iterator.
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = Batch*;
    using reference = Batch&;
    /// @}

    /// For DataLoader::begin(). The loader must outlive the iterator.
    explicit Iterator(DataLoader* loader) : loader_(loader) {}
    /// @{
    /// The current batch. It is valid until the next increment, and the loop may move from it.
    Batch& operator*() const { return loader_->current(); }
    Batch* operator->() const { return &loader_->current(); }
    /// @}
    /// @{
    /// Gets the next batch; waits for it if workers load it. Throws what the data set throws.
    Iterator& operator++() {
      loader_->advance();
      return *this;
    }
    void operator++(int) { loader_->advance(); }
    /// @}
    /// True after the last batch of the pass.
    bool operator==(std::default_sentinel_t) const { return loader_->is_over(); }

   private:
    DataLoader* loader_;
  };

  /// Throws std::invalid_argument if batch_size is 0, or prefetch_factor with workers.
  template <BatchDataset Dataset, Sampler S>
  DataLoader(Dataset dataset, std::shared_ptr<S> sampler, DataLoaderOptions options)
      : DataLoader([kept = std::make_shared<const Dataset>(std::move(dataset))](
                       const at::Tensor& indices) { return Batch(kept->get_batch(indices)); },
                   source_of(std::move(sampler)), options) {}
  /// The same with a DistributedSampler by value: copies of it share their state.
  template <BatchDataset Dataset>
  DataLoader(Dataset dataset, const DistributedSampler& sampler, DataLoaderOptions options)
      : DataLoader(std::move(dataset), std::make_shared<DistributedSampler>(sampler), options) {}
  ~DataLoader();  ///< waits for the batches that workers are loading
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  /// Starts a pass, and ends one that is not over.
  Iterator begin();
  /// The end of the pass, for range-for.
  std::default_sentinel_t end() const { return {}; }
  size_t size() const;  ///< batches of this rank in a whole pass; Python: len()

 private:
  // A sampler of any type.
  struct Source {
    std::function<void()> reset;
    std::function<std::optional<std::vector<size_t>>(size_t)> next;
    std::function<void(size_t)> mark;
    std::function<size_t()> size;
  };
  using Load = std::function<Batch(const at::Tensor&)>;
  class Workers;
  struct Impl;

  template <Sampler S>
  static Source source_of(std::shared_ptr<S> sampler) {
    Source source;
    source.reset = [sampler] {
      if constexpr (requires(S & s) { s.reset(); }) sampler->reset();
    };
    source.next = [sampler](size_t count) { return sampler->next(count); };
    source.mark = [sampler](size_t count) {
      if constexpr (MarksConsumed<S>) sampler->mark_consumed(count);
    };
    source.size = [sampler] { return static_cast<size_t>(sampler->size()); };
    return source;
  }
  DataLoader(Load load, Source source, DataLoaderOptions options);
  Batch& current();
  void advance();
  bool is_over() const;

  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun::data
