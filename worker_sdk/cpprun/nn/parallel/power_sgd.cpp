// PowerSGD (Vogels et al., NeurIPS 2019): approximates a gradient matrix M by P Q^T and sends P and
// Q.
//
// Follows Python's powerSGD_hook step by step, random numbers included, so that results can be
// compared. The collectives are in the order uncompressed, P, Q; P and Q of different buckets may
// overlap.
#include <algorithm>
#include <random>
#include <sstream>
#include <stdexcept>
#include <unordered_map>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include "cpprun/dist/live_objects.hpp"
#include "cpprun/nn/parallel/comm_hook_adapter.hpp"

namespace cpprun::nn::parallel {
namespace {

void gram_schmidt(const at::Tensor& matrices, double epsilon) {
  const int64_t columns = matrices.size(2);
  for (int64_t i = 0; i < columns; ++i) {
    at::Tensor column = matrices.narrow(2, i, 1);
    const at::Tensor length = at::norm(column, 2, {1}, /*keepdim=*/true);
    column.div_(epsilon == 0 ? length : length + epsilon);
    if (i + 1 == columns) continue;
    at::Tensor rest = matrices.narrow(2, i + 1, columns - i - 1);
    rest.sub_(at::sum(column * rest, {1}, /*keepdim=*/true) * column);
  }
}

// Makes the columns of each matrix orthonormal, in place.
void orthogonalize(const at::Tensor& matrices, double epsilon) {
  const bool is_half =
      matrices.scalar_type() == at::kHalf || matrices.scalar_type() == at::kBFloat16;
  if (matrices.size(2) <= 2 || is_half) {
    gram_schmidt(matrices, epsilon);
  } else {
    matrices.copy_(std::get<0>(at::linalg_qr(matrices)));
  }
}

// A gradient worth compressing, as a batch of one matrix, with its parts of P and Q.
struct Matrix {
  at::Tensor gradient;  // (1, n, m): a view into the bucket
  at::Tensor p, q;      // (1, n, rank), (1, m, rank)
};

// State of one bucket between steps.
struct Memory {
  at::Tensor error, p, q;
};

// State of one bucket within a step.
struct Pass {
  at::Tensor buffer, before;  // `before` compression, for the error
  std::vector<at::Tensor> plain;
  at::Tensor plain_memory;
  std::vector<Matrix> matrices;
  Memory* memory = nullptr;
};

class PowerSgd : public std::enable_shared_from_this<PowerSgd> {
 public:
  explicit PowerSgd(const PowerSgdOptions& options)
      : options_(options), random_(options.random_seed) {}

  HookResult run(GradBucket& bucket) {
    const bool is_early = iteration_ < options_.start_power_sgd_iter;
    if (bucket.is_last()) ++iteration_;
    return is_early ? allreduce_hook().run(bucket) : compress(bucket);
  }

  // P and Q are sums over the ranks, hence equal on all of them; the errors are of this rank.
  StateDict save() const {
    StateDict state{{"iteration", iteration_}, {"random", (std::ostringstream() << random_).str()}};
    for (const auto& [bucket, memory] : memories_) {
      if (!memory.p.defined()) continue;
      state[kP + std::to_string(bucket)] = memory.p;
      state[kQ + std::to_string(bucket)] = memory.q;
    }
    return state;
  }
  StateDict save_errors() const {
    StateDict state;
    for (const auto& [bucket, memory] : memories_) {
      if (memory.error.defined()) state[kError + std::to_string(bucket)] = memory.error;
    }
    return state;
  }
  void load(const StateDict& state) {
    iteration_ = std::get<int64_t>(state.at("iteration"));
    std::istringstream(std::get<std::string>(state.at("random"))) >> random_;
    memories_.clear();
    load_tensors(state, kP, &Memory::p);
    load_tensors(state, kQ, &Memory::q);
  }
  void load_errors(const StateDict& state) { load_tensors(state, kError, &Memory::error); }

 private:
  static constexpr const char* kP = "p.";  // each followed by the number of its bucket
  static constexpr const char* kQ = "q.";
  static constexpr const char* kError = "error.";

  void load_tensors(const StateDict& state, const std::string& prefix, at::Tensor Memory::*field) {
    for (const auto& [name, value] : state) {
      if (!name.starts_with(prefix)) continue;
      memories_[std::stoul(name.substr(prefix.size()))].*field = std::get<at::Tensor>(value);
    }
  }

  HookResult compress(const GradBucket& bucket) {
    auto pass = std::make_shared<Pass>();
    pass->buffer = bucket.buffer();
    pass->memory = &memories_[bucket.index()];
    feed_back(*pass);
    const bool is_new = split(bucket, *pass);
    fill_q(*pass, is_new);
    for (auto& it : pass->matrices) at::bmm_out(it.p, it.gradient, it.q);
    auto wait_plain = start_sum(bucket.group(), pass->plain_memory);
    auto wait_p = start_sum(bucket.group(), pass->memory->p);
    return [self = shared_from_this(), pass, wait_plain, wait_p, group = bucket.group()] {
      wait_plain();
      wait_p();
      return self->finish(*pass, group);
    };
  }

  void feed_back(Pass& pass) const {
    if (!options_.use_error_feedback) return;
    const at::Tensor& error = pass.memory->error;
    if (error.defined() && error.sizes() == pass.buffer.sizes()) {
      pass.buffer.add_(error.to(pass.buffer.options()));  // from a snapshot: on the CPU
    }
    pass.before = pass.buffer.detach().clone();
  }

  int64_t rank_of(const at::Tensor& matrix) const {
    return std::min({matrix.size(0), matrix.size(1), options_.matrix_approximation_rank});
  }

  bool is_worth_it(const at::Tensor& matrix) const {
    const auto compressed =
        static_cast<double>((matrix.size(0) + matrix.size(1)) * rank_of(matrix));
    return compressed * options_.min_compression_rate < static_cast<double>(matrix.numel());
  }

  // Separates the gradients that are compressed from those that are not, and allocates P and Q.
  // Returns true if Q is new and uninitialised.
  bool split(const GradBucket& bucket, Pass& pass) const {
    std::vector<at::Tensor> flat;
    int64_t p_size = 0;
    int64_t q_size = 0;
    for (const at::Tensor& gradient : bucket.gradients()) {
      const at::Tensor matrix = gradient.view({gradient.dim() == 0 ? 1 : gradient.size(0), -1});
      if (is_worth_it(matrix)) {
        pass.matrices.push_back({matrix.unsqueeze(0), {}, {}});
        p_size += matrix.size(0) * rank_of(matrix);
        q_size += matrix.size(1) * rank_of(matrix);
      } else {
        pass.plain.push_back(gradient);
        flat.push_back(gradient.reshape({-1}));
      }
    }
    pass.plain_memory = flat.empty() ? at::empty({0}, pass.buffer.options()) : at::cat(flat);
    group_equal_shapes(pass);
    return lay_out(pass, p_size, q_size);
  }

  // Python processes shapes in the order of their first matrix, so the random numbers must, too.
  static void group_equal_shapes(Pass& pass) {
    std::vector<Matrix> ordered;
    while (!pass.matrices.empty()) {
      const auto shape = pass.matrices.front().gradient.sizes().vec();
      const auto same = [&](const Matrix& it) { return it.gradient.sizes() == shape; };
      std::copy_if(pass.matrices.begin(), pass.matrices.end(), std::back_inserter(ordered), same);
      std::erase_if(pass.matrices, same);
    }
    pass.matrices = std::move(ordered);
  }

  bool lay_out(Pass& pass, int64_t p_size, int64_t q_size) const {
    Memory& memory = *pass.memory;
    const bool is_new = !options_.warm_start || !memory.p.defined() || memory.p.numel() != p_size ||
                        memory.q.numel() != q_size;
    if (is_new) {
      memory.p = at::empty({p_size}, pass.buffer.options());
      memory.q = at::empty({q_size}, pass.buffer.options());
    } else {  // those of a snapshot are on the CPU
      memory.p = memory.p.to(pass.buffer.options());
      memory.q = memory.q.to(pass.buffer.options());
    }
    int64_t p_at = 0;
    int64_t q_at = 0;
    for (Matrix& it : pass.matrices) {
      const int64_t n = it.gradient.size(1);
      const int64_t m = it.gradient.size(2);
      const int64_t rank = rank_of(it.gradient[0]);
      it.p = memory.p.narrow(0, p_at, n * rank).view({1, n, rank});
      it.q = memory.q.narrow(0, q_at, m * rank).view({1, m, rank});
      p_at += n * rank;
      q_at += m * rank;
    }
    return is_new;
  }

  void fill_q(const Pass& pass, bool is_new) {
    if (is_new) {
      at::Generator generator = at::detail::createCPUGenerator(next_seed());
      for (const Matrix& it : pass.matrices) {
        it.q.copy_(at::randn(it.q.sizes(), generator, it.q.options().device(at::kCPU)));
      }
    }
    for (const Matrix& it : pass.matrices) orthogonalize(it.q, options_.orthogonalization_epsilon);
  }

  // numpy's RandomState.randint(1_000_000_000), which Python's hook uses: draws 30 bits until the
  // number is small enough.
  uint64_t next_seed() {
    for (;;) {
      const auto value = static_cast<uint32_t>(random_()) & 0x3fff'ffffU;
      if (value < 1'000'000'000U) return value;
    }
  }

  at::Tensor finish(Pass& pass, const dist::ProcessGroup& group) const {
    const int world_size = group.size();
    pass.plain_memory.div_(world_size);
    int64_t offset = 0;
    for (const at::Tensor& gradient : pass.plain) {
      gradient.copy_(pass.plain_memory.narrow(0, offset, gradient.numel()).view_as(gradient));
      offset += gradient.numel();
    }
    for (Matrix& it : pass.matrices) {
      orthogonalize(it.p, options_.orthogonalization_epsilon);
      at::bmm_out(it.q, it.gradient.transpose(1, 2), it.p);
    }
    start_sum(group, pass.memory->q)();
    pass.memory->q.div_(world_size);
    for (Matrix& it : pass.matrices) at::bmm_out(it.gradient, it.p, it.q.transpose(1, 2));
    if (options_.use_error_feedback) pass.memory->error = pass.before - pass.buffer;
    return pass.buffer;
  }

  PowerSgdOptions options_;
  std::mt19937 random_;
  int64_t iteration_ = 0;
  std::unordered_map<size_t, Memory> memories_;  // by bucket; references stay valid
  dist::Counted<dist::LiveObjects::comm_hooks> counted_;
};

}  // namespace

CommHook power_sgd_hook(const PowerSgdOptions& options) {
  if ((options.use_error_feedback || options.warm_start) && options.start_power_sgd_iter <= 1) {
    throw std::invalid_argument(
        "power_sgd_hook: start_power_sgd_iter is " + std::to_string(options.start_power_sgd_iter) +
        ", but must be at least 2 with use_error_feedback or warm_start: the first step rebuilds "
        "the buckets");
  }
  auto state = std::make_shared<PowerSgd>(options);
  return {"powerSGD_hook",
          [state](GradBucket& bucket) { return state->run(bucket); },
          {.save = [state] { return state->save(); },
           .load = [state](const StateDict& saved) { state->load(saved); },
           .save_own = [state] { return state->save_errors(); },
           .load_own = [state](const StateDict& saved) { state->load_errors(saved); }}};
}

}  // namespace cpprun::nn::parallel
