// The training of the cases of cpprun::elastic: a net, its data, and faults.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <torch/torch.h>

#include "cpprun/elastic/elastic.hpp"
#include "tests/sdk/support/cases.hpp"

namespace cpprun::test {

void print_line(const std::string& text);  // one line: "[rank R] text"
void print_step(int64_t step, int64_t round);

std::shared_ptr<torch::nn::SequentialImpl> elastic_net();
at::Tensor batch(int64_t step,
                 int rank);  // the data of a step, whatever process takes it, on the CPU
std::string hash_of(const torch::nn::Module& module);

// Removes a tensor's hook at the end of a scope.
class HookGuard {
 public:
  HookGuard(at::Tensor tensor, const std::function<void()>& hook);
  HookGuard(const HookGuard&) = delete;
  ~HookGuard();

 private:
  at::Tensor tensor_;
  unsigned number_;
};

// The words NAME=VALUE of a case.
class ElasticWords {
 public:
  explicit ElasticWords(const Words& words);

  std::string text(const std::string& name) const;
  int64_t number(const std::string& name, int64_t other) const;
  ElasticOptions options() const;
  // backend=NAME, default gloo; device=cuda, default cpu.
  dist::InitOptions group() const;
  at::Device device() const;
  void sleep() const;

  // This process has the fault: fault=KIND:RANK names its rank, and it was started in the first
  // round.
  bool is_faulty(const std::string& kind) const;
  void inject() const;                                       // hang or throw
  void die_if(const std::string& kind, int64_t step) const;  // SIGKILL, at step 10
  void die_early(int64_t round, int rank) const;             // SIGKILL, in round 2
  std::unique_ptr<HookGuard> kill_in_backward(const at::Tensor& parameter, bool is_due) const;

 private:
  std::map<std::string, std::string> values_;
  const int first_rank_;
  const bool is_of_first_round_;
};

}  // namespace cpprun::test
