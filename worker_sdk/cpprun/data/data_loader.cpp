#include "cpprun/data/data_loader.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace cpprun::data {
namespace {

at::Tensor as_tensor(const std::vector<size_t>& indices) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(indices.size())}, at::kLong);
  std::copy(indices.begin(), indices.end(), tensor.data_ptr<int64_t>());
  return tensor;
}

}  // namespace

TensorDataset::TensorDataset(std::vector<at::Tensor> tensors) : tensors_(std::move(tensors)) {
  if (tensors_.empty()) throw std::invalid_argument("TensorDataset: no tensor");
  for (const at::Tensor& tensor : tensors_) {
    if (tensor.dim() == 0 || tensor.size(0) != tensors_[0].size(0)) {
      throw std::invalid_argument("TensorDataset: size mismatch between tensors: " +
                                  c10::str(tensors_[0].sizes(), " and ", tensor.sizes()));
    }
  }
}

size_t TensorDataset::size() const { return static_cast<size_t>(tensors_[0].size(0)); }

std::vector<at::Tensor> TensorDataset::get_batch(const at::Tensor& indices) const {
  std::vector<at::Tensor> batch;
  for (const at::Tensor& tensor : tensors_) {
    batch.push_back(tensor.index_select(0, indices.to(tensor.device())));
  }
  return batch;
}

// Threads that run tasks in the order in which they were given.
class DataLoader::Workers {
 public:
  using Task = std::packaged_task<Batch()>;

  explicit Workers(size_t count) {
    for (size_t i = 0; i < count; ++i) threads_.emplace_back([this] { run(); });
  }
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void give(Task task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }
  // Drops the tasks that no thread has begun.
  void clear() {
    const std::lock_guard lock(mutex_);
    tasks_.clear();
  }

 private:
  void run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_ending_ || !tasks_.empty(); });
      if (is_ending_) return;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

struct DataLoader::Impl {
  struct Ahead {
    size_t samples = 0;
    std::future<Batch> batch;
  };

  Impl(Load given_load, Source given_source, const DataLoaderOptions& given)
      : load(std::move(given_load)), source(std::move(given_source)), options(given) {
    if (options.batch_size == 0) throw std::invalid_argument("DataLoader: batch_size is 0");
    if (options.num_workers == 0) return;
    if (options.prefetch_factor == 0) {
      throw std::invalid_argument("DataLoader: prefetch_factor is 0, but there are workers");
    }
    workers = std::make_unique<Workers>(options.num_workers);
  }

  void begin() {
    if (workers) workers->clear();
    ahead.clear();
    has_more = true;
    source.reset();
    source.mark(0);  // from here on, marks count
    fetch();
  }

  // Asks the sampler for batches until enough are on their way.
  void fill() {
    const size_t wanted = workers ? options.num_workers * options.prefetch_factor : 1;
    while (has_more && ahead.size() < wanted) {
      const auto indices = source.next(options.batch_size);
      has_more = indices && !indices->empty() &&
                 (!options.drop_last || indices->size() == options.batch_size);
      if (!has_more) break;
      Workers::Task task([this, rows = as_tensor(*indices)] {
        Batch batch = load(rows);
        if (options.pin_memory && at::globalContext().hasCUDA()) {
          for (at::Tensor& tensor : batch) tensor = tensor.pin_memory();
        }
        return batch;
      });
      ahead.push_back({indices->size(), task.get_future()});
      if (workers) {
        workers->give(std::move(task));
      } else {
        task();
      }
    }
  }

  void fetch() {
    current.clear();
    fill();
    is_over = ahead.empty();
    if (is_over) return;
    Ahead first = std::move(ahead.front());
    ahead.pop_front();
    samples = first.samples;
    if (workers) fill();
    current = first.batch.get();
    if (!options.device) return;
    for (at::Tensor& tensor : current) {
      tensor = tensor.to(*options.device, /*non_blocking=*/options.pin_memory);
    }
  }

  void count() { source.mark(std::exchange(samples, 0)); }

  Load load;
  Source source;
  DataLoaderOptions options;
  std::deque<Ahead> ahead;  // in the order of the sampler
  Batch current;
  size_t samples = 0;  // of `current`, as long as they are not counted
  bool has_more = true, is_over = true;
  std::unique_ptr<Workers> workers;  // the last member: its threads use the others
};

DataLoader::DataLoader(Load load, Source source, DataLoaderOptions options)
    : impl_(std::make_unique<Impl>(std::move(load), std::move(source), options)) {}

DataLoader::~DataLoader() = default;

DataLoader::Iterator DataLoader::begin() {
  impl_->begin();
  return Iterator(this);
}

size_t DataLoader::size() const {
  const size_t samples = impl_->source.size(), each = impl_->options.batch_size;
  return impl_->options.drop_last ? samples / each : (samples + each - 1) / each;
}

DataLoader::Batch& DataLoader::current() {
  impl_->count();
  return impl_->current;
}

void DataLoader::advance() {
  impl_->count();
  impl_->fetch();
}

bool DataLoader::is_over() const { return impl_->is_over; }

}  // namespace cpprun::data
