#include "cpprun/nn/parallel/ddp_state.hpp"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <sstream>
#include <utility>

#include "cpprun/dist/backend/error_translation.hpp"
#include "cpprun/dist/group/group_state.hpp"
#include "cpprun/dist/group/round.hpp"
#include "cpprun/nn/parallel/verify_model.hpp"
#include "cpprun/nn/parallel/verify_parameters.hpp"
#include "cpprun/worker/agent_link.hpp"

namespace cpprun::nn::parallel {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;
constexpr double kDefaultCap = 25;
constexpr size_t kBroadcastBytes =
    size_t{250} * 1024 * 1024;  // Python's value: both must split alike

int64_t bytes(double mebibytes) { return static_cast<int64_t>(mebibytes * kMebibyte); }

std::string shape_of(const at::Tensor& tensor) {
  std::ostringstream text;
  text << c10::toString(tensor.scalar_type()) << " " << tensor.sizes();
  return text.str();
}

std::string yes(bool on) { return on ? "true" : "false"; }

// Everything that must be equal on all ranks.
Description describe(const ModuleState& model, const DdpOptions& options) {
  Description lines{
      "find_unused_parameters " + yes(options.find_unused_parameters),
      "static_graph " + yes(options.static_graph),
      "broadcast_buffers " + yes(options.broadcast_buffers),
      "skip_all_reduce_unused_params " + yes(options.skip_all_reduce_unused_params),
      "bucket_cap_mb " + std::to_string(options.bucket_cap_mb.value_or(0)),
  };
  for (const double cap : options.bucket_cap_mb_list) {
    lines.push_back("bucket_cap_mb_list ... " + std::to_string(cap));
  }
  for (const auto& [name, tensor] : model.parameters) {
    lines.push_back("parameter " + name + " " + shape_of(tensor) +
                    (tensor.requires_grad() ? "" : " without gradient"));
  }
  if (!options.broadcast_buffers) return lines;
  for (const auto& [name, tensor] : model.buffers) {
    lines.push_back("buffer " + name + " " + shape_of(tensor));
  }
  return lines;
}

void warn_of_batch_norm(const ModuleState& model, const dist::ProcessGroup& group) {
  if (group.size() == 1 || group.rank() != 0 || model.plain_batch_norm.empty()) return;
  std::fprintf(
      stderr,
      "cpprun: DistributedDataParallel wraps %s with a BatchNorm (%s) that is not synchronised: "
      "each rank normalises by its own part of the batch, so training is not the same as with "
      "one large batch. Cure: nn::SyncBatchNorm or nn::convert_sync_batchnorm.\n",
      model.type.c_str(), model.plain_batch_norm.c_str());
}

double cap_of(const DdpOptions& options) {
  if (options.bucket_cap_mb_list.empty()) return options.bucket_cap_mb.value_or(kDefaultCap);
  return *std::max_element(options.bucket_cap_mb_list.begin(), options.bucket_cap_mb_list.end());
}

bool is_default_cap(const DdpOptions& options) {
  return !options.bucket_cap_mb && options.bucket_cap_mb_list.empty();
}

std::vector<int64_t> cap_list(const DdpOptions& options) {
  std::vector<int64_t> caps;
  for (const double cap : options.bucket_cap_mb_list) caps.push_back(bytes(cap));
  return caps;
}

// Bucket limits of the first step. Later the Reducer rebuilds its buckets in the order in which the
// gradients arrived; until then, only a single bucket is certain to match that order. With
// find_unused_parameters it never rebuilds.
std::vector<size_t> first_limits(const DdpOptions& options) {
  const auto list = cap_list(options);
  if (!list.empty()) return {list.begin(), list.end()};
  if (options.static_graph || !options.find_unused_parameters) {
    return {static_cast<size_t>(std::numeric_limits<int64_t>::max())};
  }
  const auto cap = static_cast<size_t>(bytes(cap_of(options)));
  if (!is_default_cap(options)) return {cap};
  return {static_cast<size_t>(c10d::kDefaultFirstBucketBytes), cap};
}

struct ReducerTail {
  bool skip_all_reduce_unused_params = false;
  std::vector<int64_t> bucket_bytes_cap_list;  // since 2.11
};

// Calls c10d::Reducer's constructor, which gets more arguments from version to version of LibTorch,
// in the longest form that compiles. `prefix`: parameters, buckets, group, expect_sparse, cap,
// find_unused, views, names, first cap.
template <class... Prefix>
std::shared_ptr<c10d::Reducer> new_reducer(const ReducerTail& tail, Prefix&&... prefix) {
  using c10d::Reducer;
  using Caps = std::vector<int64_t>;
  constexpr bool kIsPython = false;
  const bool skip = tail.skip_all_reduce_unused_params;
  const Caps& caps = tail.bucket_bytes_cap_list;
  if constexpr (std::is_constructible_v<Reducer, Prefix..., bool, bool, Caps, bool, bool>) {
    return std::make_shared<Reducer>(std::forward<Prefix>(prefix)..., skip, kIsPython, caps,
                                     /*batched_grad_copy=*/false, /*lazy_bucket_allocation=*/false);
  } else if constexpr (std::is_constructible_v<Reducer, Prefix..., bool, bool, Caps, bool>) {
    return std::make_shared<Reducer>(std::forward<Prefix>(prefix)..., skip, kIsPython, caps,
                                     /*batched_grad_copy=*/false);
  } else if constexpr (std::is_constructible_v<Reducer, Prefix..., bool, bool, Caps>) {
    return std::make_shared<Reducer>(std::forward<Prefix>(prefix)..., skip, kIsPython, caps);
  } else {
    return std::make_shared<Reducer>(std::forward<Prefix>(prefix)..., skip, kIsPython);
  }
}

}  // namespace

DdpState::DdpState(torch::nn::Module& wrapped, DdpOptions given)
    : options(std::move(given)),
      model(collect_state(wrapped, options)),
      group(options.process_group ? options.process_group : dist::default_group()),
      pg(dist::native(group)) {
  check_devices(model, options);
  if (cap_of(options) <= 0) {
    throw std::invalid_argument("DistributedDataParallel: bucket_cap_mb is " +
                                std::to_string(cap_of(options)) + ", but must be more than 0");
  }
  if (!options.device_ids.empty()) input_device = model.reduced.front().device();
  if (options.init_sync) start_equal();
  make_reducer();
  make_logger();
  if (options.static_graph) {
    is_static = true;
    reducer->set_static_graph();
    logger->set_static_graph();
  }
  warn_of_batch_norm(model, group);
  if (dist::needs_round_check(group)) round_check.emplace(model.reduced);
  if (group.rank() == 0) watch.emplace(model.reduced, model.type);
}

DdpState::~DdpState() {
  try {
    // First, so that the destructors of both do not fail.
    if (reducer) reducer->remove_autograd_hooks();
    logger.reset();
    reducer.reset();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cpprun: DistributedDataParallel: while ending: %s\n", error.what());
  }
}

// The same collectives in the same order as Python's constructor, because Python ranks may take
// part.
void DdpState::start_equal() {
  // A group of NCCL forms in its first collective: before it, other ranks may not have registered.
  const bool forms_late = group.state()->has_nccl();
  dist::translated("DistributedDataParallel", group, [&] {
    if (forms_late) verify_counts(*pg, model.reduced);
    verify_across_ranks(group, describe(model, options));
    if (!forms_late) verify_counts(*pg, model.reduced);
    verify_shapes(*pg, model.reduced);
    broadcast_model(0);
  });
}

void DdpState::broadcast_states(const std::vector<at::Tensor>& tensors, int source) {
  const at::NoGradGuard no_grad;
  c10d::broadcast_coalesced(pg, tensors, kBroadcastBytes, source);
}

void DdpState::broadcast_model(int source) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : model.parameters) tensors.push_back(tensor.detach());
  if (options.broadcast_buffers) {
    for (const at::Tensor& buffer : model.buffer_list) tensors.push_back(buffer.detach());
  }
  broadcast_states(tensors, source);
}

void DdpState::make_reducer() {
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
      model.reduced, first_limits(options), model.is_sparse);
  // The last layers' gradients arrive first.
  std::reverse(buckets.begin(), buckets.end());
  std::unordered_map<size_t, std::string> names;
  for (size_t i = 0; i < model.names.size(); ++i) names[i] = model.names[i];
  const int64_t cap = bytes(cap_of(options));
  const int64_t first_cap = is_default_cap(options) ? c10d::kDefaultFirstBucketBytes : cap;
  reducer = new_reducer({options.skip_all_reduce_unused_params, cap_list(options)}, model.reduced,
                        buckets, pg, model.is_sparse, cap, options.find_unused_parameters,
                        options.gradient_as_bucket_view, names, first_cap);
}

void DdpState::make_logger() {
  logger = std::make_shared<c10d::Logger>(reducer);
  reducer->set_logger(logger);
  const int output =
      options.device_ids.empty() ? -1 : options.output_device.value_or(options.device_ids.front());
  logger->set_construction_data_and_log(model.type, options.device_ids, output,
                                        options.broadcast_buffers, model.has_sync_batch_norm,
                                        options.static_graph);
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Callback : torch::CustomClassHolder {
  explicit Callback(std::function<void()> f) : call(std::move(f)) {}
  std::function<void()> call;
};

// An identity function at the end of the graph that reports the start of backward.
struct OutputSink : torch::autograd::Function<OutputSink> {
  static variable_list forward(AutogradContext* context, at::TensorList inputs,
                               const c10::intrusive_ptr<Callback>& callback) {
    context->set_materialize_grads(false);
    context->saved_data["callback"] = c10::IValue::make_capsule(callback);
    variable_list outputs;
    for (const at::Tensor& input : inputs) outputs.push_back(input.clone());
    return outputs;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto holder = context->saved_data["callback"].toCapsule();
    static_cast<Callback&>(*holder).call();
    gradients.emplace_back();  // no gradient for the callback argument
    return gradients;
  }
};

// Replaces each of `outputs` that has a graph by a copy. `on_backward` runs at the start of their
// backward (once per pass through it). Outputs that the loss does not use keep undefined gradients,
// so parameters that only they depend on count as unused.
void pass_through_sink(const std::vector<at::Tensor*>& outputs, std::function<void()> on_backward) {
  std::vector<at::Tensor*> with_graph;
  variable_list inputs;
  for (at::Tensor* output : outputs) {
    if (output->grad_fn() == nullptr) continue;
    with_graph.push_back(output);
    inputs.push_back(*output);
  }
  if (inputs.empty()) return;
  const auto callback = c10::make_intrusive<Callback>(std::move(on_backward));
  const variable_list results = OutputSink::apply(at::TensorList(inputs), callback);
  for (size_t i = 0; i < results.size(); ++i) *with_graph[i] = results[i];
}

}  // namespace

void DdpState::before_forward() {
  if (broken) std::rethrow_exception(std::exchange(broken, nullptr));
  const bool has_gradients = c10::GradMode::is_enabled();
  has_run |= has_gradients;
  if (has_gradients && watch) watch->on_forward(requires_backward_sync);
  try {
    if (has_gradients && requires_backward_sync) {
      logger->set_runtime_stats_and_log();
      reducer->prepare_for_forward();
    }
    if (join.enable) notify_join();
    if (has_gradients) reducer->rebuild_buckets();
    if (will_sync_buffers()) {
      broadcast_states(model.buffer_list, join.enable ? last_active_rank(true) : 0);
    }
    if (join.enable) announce_backward_sync();
  } catch (...) {
    std::rethrow_exception(explained(std::current_exception(), "DistributedDataParallel::forward"));
  }
}

void DdpState::after_forward(const std::vector<at::Tensor*>& outputs) {
  if (c10::GradMode::is_enabled() && requires_backward_sync) {
    requires_forward_sync = true;
    // In a hang, ranks that have come this far wait for the others in backward.
    worker::count_collective();
    std::vector<at::Tensor> roots;
    if (options.find_unused_parameters && !is_static) {
      for (const at::Tensor* output : outputs) roots.push_back(*output);
    }
    try {
      reducer->prepare_for_backward(roots);
    } catch (...) {
      std::rethrow_exception(
          explained(std::current_exception(), "DistributedDataParallel::forward"));
    }
  } else {
    requires_forward_sync = false;
  }
  if (!wants_outputs()) return;
  pass_through_sink(outputs, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || !self->is_static || self->static_first_backward_seen) return;
    self->static_first_backward_seen = true;
    torch::autograd::Engine::get_default_engine().queue_callback(
        [alive = self->reducer] { alive->delay_all_reduce(); });
  });
}

namespace {

// Names the parameters of a text like "Parameter indices which did not receive grad for rank 1: 2
// 3".
std::string names_after(const std::string& text, const std::string& mark,
                        const std::vector<std::string>& names) {
  const size_t found = text.find(mark);
  const size_t colon = found == std::string::npos ? found : text.find(':', found);
  if (colon == std::string::npos) return "";
  std::istringstream numbers(text.substr(colon + 1));
  std::string all;
  for (size_t index = 0; numbers >> index;) {
    if (index < names.size()) all += (all.empty() ? "" : ", ") + names[index];
  }
  return all;
}

}  // namespace

std::exception_ptr DdpState::explained(const std::exception_ptr& error, const char* call) const {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& thrown) {
    const std::string text = thrown.what_without_backtrace();
    if (text.find("Expected to have finished reduction") != std::string::npos) {
      const std::string parameters =
          names_after(text, "did not receive grad for rank", model.names);
      return std::make_exception_ptr(UnusedParametersError(
          "DistributedDataParallel: the last backward of rank " + std::to_string(group.rank()) +
          " gave no gradient to " + (parameters.empty() ? "some parameters" : parameters) +
          "; without find_unused_parameters, every parameter must take part in the loss on every "
          "rank. Cure: DdpOptions::find_unused_parameters = true, or let the loss use all "
          "outputs. " +
          text));
    }
  } catch (...) {
    // Translated below.
  }
  return dist::translate(error, call, group);
}

at::Tensor DdpState::number(double value) const {
  return at::full({1}, value, at::TensorOptions(at::kFloat).device(model.reduced.front().device()));
}

c10::intrusive_ptr<c10d::Work> DdpState::all_reduce(at::Tensor& tensor, c10d::ReduceOp op) {
  std::vector<at::Tensor> tensors{tensor};
  c10d::AllreduceOptions how;
  how.reduceOp = std::move(op);
  return pg->allreduce(tensors, how);
}

void DdpState::begin_join(const JoinOptions& given) {
  join = given;
  if (join.enable) logger->set_uneven_input_join();
}

// The Reducer keeps the last count of ranks, and would divide by it in every later backward.
JoinOptions DdpState::end_join() {
  reducer->set_forward_pass_work_handle(nullptr, /*useStaticWorldSize=*/true);
  return std::exchange(join, JoinOptions{.enable = false});
}

// An active rank adds itself to the count before each forward.
void DdpState::notify_join() {
  at::Tensor one = number(1);
  auto counted = all_reduce(one);
  if (join.throw_on_early_termination) {
    at::Tensor exhausted = number(0);
    all_reduce(exhausted)->wait();
    if (exhausted.item<float>() != 0) {
      end_join();
      throw JoinTerminatedError("DistributedDataParallel::join: another rank has no more data");
    }
  }
  reducer->set_forward_pass_work_handle(counted, join.divide_by_initial_world_size);
}

// Informs ranks in finish_join whether this step averages gradients; does not wait for the sum.
void DdpState::announce_backward_sync() {
  at::Tensor flag = number(requires_backward_sync ? 1 : 0);
  all_reduce(flag);
}

int DdpState::last_active_rank(bool is_candidate) {
  at::Tensor rank = at::full({1}, is_candidate ? group.rank() : -1,
                             at::TensorOptions(at::kLong).device(model.reduced.front().device()));
  all_reduce(rank, c10d::ReduceOp::MAX)->wait();
  return static_cast<int>(rank.item<int64_t>());
}

void DdpState::finish_join() {
  const JoinOptions how = end_join();
  if (!how.enable) return;
  dist::translated("DistributedDataParallel::join", group, [&] {
    const at::NoGradGuard no_grad;
    bool is_last = true;
    for (;;) {
      at::Tensor active = number(0);
      all_reduce(active)->wait();
      if (active.item<float>() == 0) break;
      if (how.throw_on_early_termination) {
        at::Tensor one = number(1);
        all_reduce(one)->wait();
        throw JoinTerminatedError("DistributedDataParallel::join: rank " +
                                  std::to_string(group.rank()) + " has no more data");
      }
      join_shadow_step();
      is_last = false;
    }
    broadcast_model(last_active_rank(is_last));
  });
}

void DdpState::join_shadow_step() {
  reducer->rebuild_buckets();
  if (will_sync_buffers()) broadcast_states(model.buffer_list, last_active_rank(false));
  at::Tensor flag = number(0);
  all_reduce(flag)->wait();
  requires_forward_sync = flag.item<float>() != 0;
  if (requires_forward_sync) join_shadow_backward();
}

void DdpState::join_shadow_backward() {
  auto buckets = reducer->get_grad_buckets(/*return_zero_tensors=*/true);
  std::vector<c10::intrusive_ptr<c10::ivalue::Future>> sums;
  for (auto& bucket : buckets) sums.push_back(reducer->run_comm_hook(bucket));
  for (const auto& sum : sums) {
    sum->wait();
    if (hook != nullptr) hook->parseHookResult(sum->value());
  }
  if (options.find_unused_parameters) {
    at::Tensor used = reducer->get_local_used_map_on_device();
    all_reduce(used)->wait();
  }
  reducer->push_rebuilt_params_for_all_indices();
}

}  // namespace cpprun::nn::parallel
