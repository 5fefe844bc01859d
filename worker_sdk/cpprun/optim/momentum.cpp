#include "cpprun/optim/momentum.hpp"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <tuple>
#include <type_traits>

namespace cpprun::optim {
namespace {

using torch::optim::OptimizerOptions;

// Calls `f` with the options as their own type, if that has betas or momentum.
template <class F, class Options>
void visit(Options& options, F f) {
  auto as = [&]<class T>(std::type_identity<T>) {
    using Own = std::conditional_t<std::is_const_v<Options>, const T, T>;
    if (auto* const own = dynamic_cast<Own*>(&options)) f(*own);
  };
  as(std::type_identity<torch::optim::SGDOptions>());
  as(std::type_identity<torch::optim::AdamOptions>());
  as(std::type_identity<torch::optim::AdamWOptions>());
  as(std::type_identity<torch::optim::RMSpropOptions>());
}

template <class T>
concept HasBetas = requires(T& options) {
  options.betas();
};

}  // namespace

std::optional<double> get_momentum(const OptimizerOptions& options) {
  std::optional<double> momentum;
  visit(options, [&](const auto& own) {
    if constexpr (HasBetas<decltype(own)>) {
      momentum = std::get<0>(own.betas());
    } else {
      momentum = own.momentum();
    }
  });
  return momentum;
}

void set_momentum(OptimizerOptions& options, double momentum) {
  visit(options, [&](auto& own) {
    if constexpr (HasBetas<decltype(own)>) {
      std::get<0>(own.betas()) = momentum;
    } else {
      own.momentum(momentum);
    }
  });
}

}  // namespace cpprun::optim
