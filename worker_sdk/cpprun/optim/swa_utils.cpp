// The order of operations is Python's, because another one gives other last bits.
#include "cpprun/optim/swa_utils.hpp"

#include <ATen/ATen.h>

#include <map>
#include <tuple>

namespace cpprun::optim::swa_utils {
namespace {

using Tensors = std::vector<at::Tensor>;

Tensors detached(const Tensors& tensors) {
  Tensors all;
  for (const at::Tensor& tensor : tensors) all.push_back(tensor.detach());
  return all;
}

Tensors averaged_tensors(const torch::nn::Module& module, bool has_buffers) {
  Tensors all = detached(module.parameters());
  if (!has_buffers) return all;
  const Tensors buffers = detached(module.buffers());
  all.insert(all.end(), buffers.begin(), buffers.end());
  return all;
}

void copy_each(const Tensors& to, const Tensors& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i].copy_(from.at(i));
}

bool takes_lerp(const at::Tensor& tensor) {
  return tensor.is_floating_point() || tensor.is_complex();
}

void check_same(const torch::OrderedDict<std::string, at::Tensor>& own,
                const torch::OrderedDict<std::string, at::Tensor>& models, const char* what) {
  for (const auto& item : own) {
    const at::Tensor* other = models.find(item.key());
    if (other == nullptr || other->sizes() != item.value().sizes()) {
      throw std::invalid_argument("AveragedModel: the model has no " + std::string(what) + " '" +
                                  item.key() + "' of the copy's shape");
    }
  }
  if (own.size() != models.size()) {
    throw std::invalid_argument("AveragedModel: the model has " + std::to_string(models.size()) +
                                " " + what + "s, the copy has " + std::to_string(own.size()));
  }
}

// As Python's default on the CPU, where it calls no kernel for lists.
void mean_one_by_one(const Tensors& averaged, const Tensors& current, int64_t num_averaged) {
  const at::Tensor count = at::scalar_tensor(num_averaged + 1, at::kLong);
  for (size_t i = 0; i < averaged.size(); ++i) {
    averaged[i].copy_(averaged[i] + (current[i] - averaged[i]) / count);
  }
}

}  // namespace

MultiAvgFn get_ema_multi_avg_fn(double decay) {
  if (!(decay >= 0 && decay <= 1)) {
    throw std::invalid_argument("Invalid decay value " + std::to_string(decay) +
                                " provided. Please provide a value in [0,1] range.");
  }
  return [decay](const Tensors& averaged, const Tensors& current, int64_t) {
    if (takes_lerp(averaged.at(0))) return at::_foreach_lerp_(averaged, current, 1 - decay);
    for (size_t i = 0; i < averaged.size(); ++i) {
      averaged[i].copy_(averaged[i] * decay + current[i] * (1 - decay));
    }
  };
}

MultiAvgFn get_swa_multi_avg_fn() {
  return [](const Tensors& averaged, const Tensors& current, int64_t num_averaged) {
    if (takes_lerp(averaged.at(0))) {
      // Python divides a tensor of float32.
      const auto weight = 1.0F / static_cast<float>(num_averaged + 1);
      return at::_foreach_lerp_(averaged, current, static_cast<double>(weight));
    }
    mean_one_by_one(averaged, current, num_averaged);
  };
}

namespace detail {

void check_same_architecture(const torch::nn::Module& averaged, const torch::nn::Module& model) {
  check_same(averaged.named_parameters(), model.named_parameters(), "parameter");
  check_same(averaged.named_buffers(), model.named_buffers(), "buffer");
}

void copy_parameters(torch::nn::Module& averaged, const torch::nn::Module& model) {
  const at::NoGradGuard no_grad;
  copy_each(averaged_tensors(averaged, true), averaged_tensors(model, true));
}

void update_average(torch::nn::Module& averaged, const torch::nn::Module& model,
                    at::Tensor& n_averaged, const AveragedModelOptions& options) {
  const at::NoGradGuard no_grad;
  const Tensors own = averaged_tensors(averaged, options.use_buffers);
  const Tensors current = averaged_tensors(model, options.use_buffers);
  const auto count = n_averaged.item<int64_t>();
  if (count == 0) {
    copy_each(own, current);
  } else {
    std::map<std::tuple<std::string, at::ScalarType>, std::pair<Tensors, Tensors>> kinds;
    for (size_t i = 0; i < own.size(); ++i) {
      auto& [to, from] = kinds[{own[i].device().str(), own[i].scalar_type()}];
      to.push_back(own[i]);
      from.push_back(current.at(i).to(own[i].device()));
    }
    for (const auto& [kind, lists] : kinds) {
      const auto& [to, from] = lists;
      if (options.multi_avg_fn) {
        options.multi_avg_fn(to, from, count);
      } else if (to[0].is_cuda()) {
        get_swa_multi_avg_fn()(to, from, count);
      } else {
        mean_one_by_one(to, from, count);
      }
    }
  }
  if (!options.use_buffers) copy_each(detached(averaged.buffers()), detached(model.buffers()));
  n_averaged.add_(1);
}

}  // namespace detail
}  // namespace cpprun::optim::swa_utils
