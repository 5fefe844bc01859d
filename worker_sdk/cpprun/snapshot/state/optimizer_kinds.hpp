// Python's names for the options of a parameter group and the state of a parameter, for each of
// LibTorch's optimizers. One list of fields serves saving and loading. Slow to compile; private to
// optimizer_state.cpp.
#pragma once

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "snapshot_files/pickle/value.hpp"

namespace cpprun::snapshot {

// Fields of LBFGS, for which Python's type differs from that of other optimizers' fields.
struct WholeNumber {  // an int, where a count of steps is a tensor
  int64_t& value;
};
struct LateNumber {  // missing before the first step
  double& value;
};
struct OneElement {  // a tensor without dimensions; Python may have a number
  at::Tensor& tensor;
};
struct TensorList {  // each as a field of type Tensor, or as OneElement
  std::deque<at::Tensor>& tensors;
  bool has_one_element_each;
};

template <class F>
void fields(torch::optim::SGDOptions& o, F&& f) {
  f("lr", o.lr()), f("momentum", o.momentum()), f("dampening", o.dampening());
  f("weight_decay", o.weight_decay()), f("nesterov", o.nesterov());
}
template <class F>
void fields(torch::optim::SGDParamState& s, F&& f) {
  f("momentum_buffer", s.momentum_buffer());
}

template <class Options>
concept AdamLike = std::is_same_v<Options, torch::optim::AdamOptions> ||
    std::is_same_v<Options, torch::optim::AdamWOptions>;
template <class State>
concept AdamLikeState = std::is_same_v<State, torch::optim::AdamParamState> ||
    std::is_same_v<State, torch::optim::AdamWParamState>;

template <AdamLike Options, class F>
void fields(Options& o, F&& f) {
  f("lr", o.lr()), f("betas", o.betas()), f("eps", o.eps());
  f("weight_decay", o.weight_decay()), f("amsgrad", o.amsgrad());
}
template <AdamLikeState State, class F>
void fields(State& s, F&& f) {
  f("step", s.step()), f("exp_avg", s.exp_avg()), f("exp_avg_sq", s.exp_avg_sq());
  f("max_exp_avg_sq", s.max_exp_avg_sq());
}

template <class F>
void fields(torch::optim::AdagradOptions& o, F&& f) {
  f("lr", o.lr()), f("lr_decay", o.lr_decay()), f("eps", o.eps());
  f("weight_decay", o.weight_decay());
  f("initial_accumulator_value", o.initial_accumulator_value());
}
template <class F>
void fields(torch::optim::AdagradParamState& s, F&& f) {
  f("step", s.step()), f("sum", s.sum());
}

template <class F>
void fields(torch::optim::RMSpropOptions& o, F&& f) {
  f("lr", o.lr()), f("momentum", o.momentum()), f("alpha", o.alpha()), f("eps", o.eps());
  f("centered", o.centered()), f("weight_decay", o.weight_decay());
}
template <class F>
void fields(torch::optim::RMSpropParamState& s, F&& f) {
  f("step", s.step()), f("square_avg", s.square_avg());
  f("momentum_buffer", s.momentum_buffer()), f("grad_avg", s.grad_avg());
}

template <class F>
void fields(torch::optim::LBFGSOptions& o, F&& f) {
  f("lr", o.lr()), f("max_iter", WholeNumber{o.max_iter()}), f("max_eval", o.max_eval());
  f("tolerance_grad", o.tolerance_grad()), f("tolerance_change", o.tolerance_change());
  f("history_size", WholeNumber{o.history_size()}), f("line_search_fn", o.line_search_fn());
}
// Without "al", which each step fills anew.
template <class F>
void fields(torch::optim::LBFGSParamState& s, F&& f) {
  f("func_evals", WholeNumber{s.func_evals()}), f("n_iter", WholeNumber{s.n_iter()});
  f("d", s.d()), f("t", LateNumber{s.t()}), f("old_dirs", TensorList{s.old_dirs(), false});
  f("old_stps", TensorList{s.old_stps(), false}), f("ro", TensorList{s.ro(), true});
  f("H_diag", OneElement{s.H_diag()}), f("prev_flat_grad", s.prev_flat_grad());
  f("prev_loss", LateNumber{s.prev_loss()});
}

// Options that only Python's groups have, with the values that describe LibTorch's behaviour.
using Extras = std::vector<std::pair<std::string, pickle::Value>>;
template <class Options>
Extras python_extras() {
  if constexpr (std::is_same_v<Options, torch::optim::LBFGSOptions>) return {};
  Extras extras{{"maximize", false}, {"foreach", pickle::None{}}, {"differentiable", false}};
  constexpr bool kIsSgd = std::is_same_v<Options, torch::optim::SGDOptions>;
  constexpr bool kIsAdagrad = std::is_same_v<Options, torch::optim::AdagradOptions>;
  if constexpr (!kIsSgd && !kIsAdagrad) extras.emplace_back("capturable", false);
  if constexpr (!std::is_same_v<Options, torch::optim::RMSpropOptions>) {
    extras.emplace_back("fused", pickle::None{});
  }
  if constexpr (AdamLike<Options>) {
    const bool is_decoupled = std::is_same_v<Options, torch::optim::AdamWOptions>;
    extras.emplace_back("decoupled_weight_decay", is_decoupled);
  }
  return extras;
}

// LBFGS has one state for all parameters together: vectors of all their elements, kept as the state
// of the first one.
template <class State>
concept JointState = std::is_same_v<State, torch::optim::LBFGSParamState>;

template <class Optimizer, class Options, class State>
struct OptimizerKind {
  using GroupOptions = Options;
  using ParamState = State;
  static bool is(const torch::optim::Optimizer& optimizer) {
    return dynamic_cast<const Optimizer*>(&optimizer) != nullptr;
  }
};

// Calls f with the kind of `optimizer`. False: it is none of these.
template <class F>
bool with_kind(const torch::optim::Optimizer& optimizer, F&& f) {
  using namespace torch::optim;
  const auto attempt = [&]<class Kind>(Kind kind) {
    if (!Kind::is(optimizer)) return false;
    f(kind);
    return true;
  };
  return attempt(OptimizerKind<SGD, SGDOptions, SGDParamState>()) ||
         attempt(OptimizerKind<Adam, AdamOptions, AdamParamState>()) ||
         attempt(OptimizerKind<AdamW, AdamWOptions, AdamWParamState>()) ||
         attempt(OptimizerKind<Adagrad, AdagradOptions, AdagradParamState>()) ||
         attempt(OptimizerKind<RMSprop, RMSpropOptions, RMSpropParamState>()) ||
         attempt(OptimizerKind<LBFGS, LBFGSOptions, LBFGSParamState>());
}

}  // namespace cpprun::snapshot
