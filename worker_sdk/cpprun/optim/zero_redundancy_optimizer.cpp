#include "cpprun/optim/zero_redundancy_optimizer.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

#include "cpprun/dist/collectives.hpp"

namespace cpprun::optim {
namespace {

using ParamGroups = std::vector<torch::optim::OptimizerParamGroup>;

// Bytes of small parameters that travel in one broadcast.
constexpr size_t kBroadcastBytes = size_t{25} << 20;  // as a bucket of DistributedDataParallel

// During its lifetime the groups have the own parameters only.
class OwnParametersOnly {
 public:
  OwnParametersOnly(ParamGroups& groups, const std::function<bool(const at::Tensor&)>& is_own)
      : groups_(groups) {
    for (auto& group : groups_) {
      whole_.push_back(group.params());
      std::erase_if(group.params(), [&](const at::Tensor& each) { return !is_own(each); });
    }
  }
  ~OwnParametersOnly() {
    for (size_t i = 0; i < whole_.size(); ++i) groups_[i].params() = std::move(whole_[i]);
  }
  OwnParametersOnly(const OwnParametersOnly&) = delete;
  OwnParametersOnly& operator=(const OwnParametersOnly&) = delete;

 private:
  ParamGroups& groups_;
  std::vector<std::vector<at::Tensor>> whole_;
};

// Broadcasts parameters of one rank: small ones of a kind together.
class ParameterBroadcast {
 public:
  ParameterBroadcast(dist::ProcessGroup group, int owner)
      : group_(std::move(group)),
        is_source_(dist::get_rank(group_) == owner),
        source_(dist::get_global_rank(group_, owner)) {}

  void add(const at::Tensor& parameter) {
    const at::Tensor data = parameter.detach();
    const bool fits = bytes_ + data.nbytes() <= kBroadcastBytes;
    if (!bucket_.empty() && (!fits || data.scalar_type() != bucket_[0].scalar_type() ||
                             data.device() != bucket_[0].device())) {
      flush();
    }
    bucket_.push_back(data);
    bytes_ += data.nbytes();
  }

  void flush() {
    const std::vector<at::Tensor> bucket = std::exchange(bucket_, {});
    bytes_ = 0;
    if (bucket.empty()) return;
    if (bucket.size() == 1) {
      dist::broadcast(bucket[0], source_, {.group = group_});
      return;
    }
    std::vector<at::Tensor> flat;
    for (const at::Tensor& each : bucket) flat.push_back(each.reshape(-1));
    const at::Tensor joined = at::cat(flat);
    dist::broadcast(joined, source_, {.group = group_});
    if (is_source_) return;
    int64_t from = 0;
    for (const at::Tensor& each : bucket) {
      each.copy_(joined.narrow(0, from, each.numel()).view(each.sizes()));
      from += each.numel();
    }
  }

 private:
  dist::ProcessGroup group_;
  bool is_source_;
  int source_;  // global rank
  std::vector<at::Tensor> bucket_;
  size_t bytes_ = 0;
};

}  // namespace

// As Python's: within each group the largest parameter first, to the rank with the fewest elements.
void ShardedOptimizer::assign_owners() {
  std::vector<int64_t> loads(static_cast<size_t>(dist::get_world_size(options_.process_group)), 0);
  owners_.clear();
  for (const auto& group : optimizer_.param_groups()) {
    std::vector<at::Tensor> sorted = group.params();
    std::ranges::stable_sort(sorted, std::greater<>(), &at::Tensor::numel);
    for (const at::Tensor& parameter : sorted) {
      const auto least = std::ranges::min_element(loads);
      owners_[parameter.unsafeGetTensorImpl()] = static_cast<int>(least - loads.begin());
      *least += parameter.numel();
    }
  }
}

int ShardedOptimizer::owner_of(const at::Tensor& parameter) {
  const void* key = parameter.unsafeGetTensorImpl();
  if (!owners_.contains(key)) assign_owners();  // the first call, or a new parameter group
  const auto found = owners_.find(key);
  if (found == owners_.end()) {
    throw std::invalid_argument("ZeroRedundancyOptimizer: the tensor is none of its parameters");
  }
  return found->second;
}

bool ShardedOptimizer::is_own(const at::Tensor& parameter) {
  return owner_of(parameter) == dist::get_rank(options_.process_group);
}

void ShardedOptimizer::drop_states_of_others() {
  for (const auto& group : optimizer_.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      if (!is_own(parameter)) optimizer_.state().erase(parameter.unsafeGetTensorImpl());
    }
  }
}

at::Tensor ShardedOptimizer::step_own_part(const LossClosure& closure,
                                           const std::function<void()>& step) {
  at::Tensor loss;
  if (closure) {
    const at::AutoGradMode with_gradients(true);
    loss = closure();
  }
  size_t parameters = 0;
  for (const auto& group : optimizer_.param_groups()) parameters += group.params().size();
  if (parameters != owners_.size()) assign_owners();  // a new group; groups are whole here
  {
    const OwnParametersOnly own(optimizer_.param_groups(),
                                [this](const at::Tensor& each) { return is_own(each); });
    step();
  }
  broadcast_parameters();
  return loss;
}

void ShardedOptimizer::broadcast_parameters() {
  const at::NoGradGuard no_grad;
  const int world = dist::get_world_size(options_.process_group);
  if (world <= 1) return;
  std::vector<std::vector<at::Tensor>> parts(static_cast<size_t>(world));  // one for each owner
  for (const auto& group : optimizer_.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      parts[static_cast<size_t>(owner_of(parameter))].push_back(parameter);
    }
  }
  for (int owner = 0; owner < world; ++owner) {
    ParameterBroadcast broadcast(options_.process_group, owner);
    for (const at::Tensor& parameter : parts[static_cast<size_t>(owner)]) broadcast.add(parameter);
    broadcast.flush();
  }
}

}  // namespace cpprun::optim
