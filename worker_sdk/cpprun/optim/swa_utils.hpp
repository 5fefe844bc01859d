/// @file
/// AveragedModel: a second model whose parameters are a running average of the trained one's (EMA,
/// SWA). Python counterpart: torch.optim.swa_utils, with its names and bits.
///
///     namespace swa_utils = cpprun::optim::swa_utils;
///     swa_utils::AveragedModel<Net> ema(ddp.module(), std::make_shared<Net>(),
///                                       {.multi_avg_fn = swa_utils::get_ema_multi_avg_fn(0.999)});
///     ... optimizer.step(); ema.update_parameters(ddp.module()); ...
///     ema.forward(x);
///
/// It is a torch::nn::Module with a submodule "module" and a buffer "n_averaged", as Python's, so a
/// Snapshot tracks it: snapshot.track("ema", ema). Ranks with equal models keep equal averages, and
/// nothing is communicated. One thread.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace cpprun::optim::swa_utils {

/// Changes `averaged` in place; both lists have tensors of one dtype and device. `num_averaged`:
/// how many models are in the average already, at least 1.
using MultiAvgFn =
    std::function<void(const std::vector<at::Tensor>& averaged,
                       const std::vector<at::Tensor>& current, int64_t num_averaged)>;
/// averaged x decay + current x (1 - decay). Throws std::invalid_argument unless 0 <= decay <= 1.
MultiAvgFn get_ema_multi_avg_fn(double decay = 0.999);
/// The mean of all models so far.
MultiAvgFn get_swa_multi_avg_fn();

/// Options of AveragedModel, with Python's names.
struct AveragedModelOptions {
  MultiAvgFn multi_avg_fn = {};  ///< empty: the mean of all models so far
  bool use_buffers = false;      ///< average buffers too; else copy them
};

namespace detail {
// Throws std::invalid_argument if the modules do not have tensors of the same names and shapes.
void check_same_architecture(const torch::nn::Module& averaged, const torch::nn::Module& model);
void copy_parameters(torch::nn::Module& averaged, const torch::nn::Module& model);
void update_average(torch::nn::Module& averaged, const torch::nn::Module& model,
                    at::Tensor& n_averaged, const AveragedModelOptions& options);
}  // namespace detail

/// A second model whose parameters are a running average of the trained one's. Python counterpart:
/// torch.optim.swa_utils.AveragedModel. `Net`: the implementation class of the model. One thread.
template <class Net>
class AveragedModel : public torch::nn::Module {
 public:
  /// `copy`: another module of the same architecture, which the AveragedModel keeps; it gets the
  /// parameters and buffers of `model`, and its device may be another one. Python copies the model
  /// itself, which C++ modules can't do in general.
  AveragedModel(const torch::nn::Module& model, std::shared_ptr<Net> copy,
                AveragedModelOptions options = {})
      : torch::nn::Module("AveragedModel"),
        module(register_module("module", std::move(copy))),
        n_averaged(register_buffer("n_averaged", at::zeros({}, at::kLong))),
        options_(std::move(options)) {
    detail::check_same_architecture(*module, model);
    detail::copy_parameters(*module, model);
  }

  /// The forward of the averaged model, `module`.
  template <class... Inputs>
  auto forward(Inputs&&... inputs) {
    return module->forward(std::forward<Inputs>(inputs)...);
  }

  /// Call it after optimizer.step(). The first call copies the parameters.
  void update_parameters(const torch::nn::Module& model) {
    detail::update_average(*module, model, n_averaged, options_);
  }

  /// The averaged model, for its members and for saving it by itself.
  std::shared_ptr<Net> module;
  at::Tensor n_averaged;  ///< number of models in the average

 private:
  AveragedModelOptions options_;
};

}  // namespace cpprun::optim::swa_utils
