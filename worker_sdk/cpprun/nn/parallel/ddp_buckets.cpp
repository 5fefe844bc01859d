// DdpCore: which gradients are summed together.
#include <algorithm>
#include <exception>
#include <sstream>
#include <unordered_map>

#include "cpprun/nn/parallel/ddp_core.hpp"
#include "cpprun/nn/parallel/ddp_state.hpp"

namespace cpprun::nn::parallel {
namespace {

using Buckets = std::vector<std::vector<size_t>>;

// "2 1;0", and the way back; what is no number ends a bucket.
std::string text_of(const Buckets& buckets) {
  std::string text;
  for (const auto& bucket : buckets) {
    if (!text.empty()) text += ';';
    for (size_t i = 0; i < bucket.size(); ++i) {
      text += (i == 0 ? "" : " ") + std::to_string(bucket[i]);
    }
  }
  return text;
}

Buckets buckets_of(const std::string& text) {
  Buckets buckets;
  std::istringstream all(text);
  for (std::string part; std::getline(all, part, ';');) {
    std::istringstream numbers(part);
    auto& bucket = buckets.emplace_back();
    for (size_t number = 0; numbers >> number;) bucket.push_back(number);
  }
  return buckets;
}

// Each of `count` parameters once, no bucket empty.
bool is_partition(const Buckets& buckets, size_t count) {
  std::vector<bool> seen(count);
  size_t found = 0;
  for (const auto& bucket : buckets) {
    if (bucket.empty()) return false;
    for (const size_t index : bucket) {
      if (index >= count || seen[index]) return false;
      seen[index] = true;
      ++found;
    }
  }
  return found == count;
}

}  // namespace

std::string DdpCore::buckets() {
  try {
    state_->reducer->rebuild_buckets();  // as the next forward would, with its errors
  } catch (...) {
    std::rethrow_exception(
        state_->explained(std::current_exception(), "DistributedDataParallel::buckets"));
  }
  std::unordered_map<const c10::TensorImpl*, size_t> place;
  for (size_t i = 0; i < state_->model.reduced.size(); ++i) {
    place[state_->model.reduced[i].unsafeGetTensorImpl()] = i;
  }
  Buckets buckets;
  for (const auto& bucket : state_->reducer->get_grad_buckets()) {
    auto& indices = buckets.emplace_back();
    for (const at::Tensor& parameter : bucket.getParameters()) {
      indices.push_back(place.at(parameter.unsafeGetTensorImpl()));
    }
  }
  return text_of(buckets);
}

void DdpCore::set_buckets(const std::string& text) {
  Buckets buckets = buckets_of(text);
  if (state_->has_run || !is_partition(buckets, state_->model.reduced.size())) return;
  state_->reducer->initialize_buckets(std::move(buckets));
}

}  // namespace cpprun::nn::parallel
