#include <unistd.h>

#include <cstdlib>

#include <torch/torch.h>

#include "cpprun/dist/backend/error_translation.hpp"
#include "cpprun/dist/native.hpp"
#include "tests/sdk/dist/init_support.hpp"

namespace cpprun::test {
namespace {

void apply(const std::string& name, const std::string& value, dist::InitOptions& to) {
  if (name == "init_method") to.init_method = value;
  if (name == "backend") to.backend = value;
  if (name == "rank") to.rank = std::stoi(value);
  if (name == "world_size") to.world_size = std::stoi(value);
  if (name == "timeout") to.timeout = std::chrono::milliseconds(std::stoi(value));
  if (name == "group_name") to.group_name = value;
  if (name == "gloo_interface") to.pg_options.gloo_interface = value;
  if (name == "hash_store") to.store = dist::make_hash_store();
}

const char* class_of(const dist::DistError& error) {
  if (dynamic_cast<const dist::DistArgumentError*>(&error)) return "DistArgumentError";
  if (dynamic_cast<const dist::DistStateError*>(&error)) return "DistStateError";
  if (dynamic_cast<const dist::DistNetworkError*>(&error)) return "DistNetworkError";
  if (dynamic_cast<const dist::DistTimeoutError*>(&error)) return "DistTimeoutError";
  if (dynamic_cast<const dist::DistUnsupportedError*>(&error)) return "DistUnsupportedError";
  if (dynamic_cast<const dist::DistMismatchError*>(&error)) return "DistMismatchError";
  if (dynamic_cast<const dist::DistBackendError*>(&error)) return "DistBackendError";
  return "DistError";
}

}  // namespace

dist::InitOptions options_of(const Words& words) {
  dist::InitOptions options;
  for (std::string word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    const size_t colon = word.find(':');
    if (colon < equals) {
      if (word.substr(0, colon) != launched_rank()) continue;
      word = word.substr(colon + 1);
    }
    const size_t at = word.find('=');
    apply(word.substr(0, at), word.substr(at + 1), options);
  }
  return options;
}

std::string launched_rank() {
  const char* rank = std::getenv("RANK");
  return rank == nullptr ? "?" : rank;
}

long sum_of_ranks(const dist::ProcessGroup& group) {
  return dist::translated("all_reduce", group, [&] {
    const auto pg = dist::native(group);
    std::vector<at::Tensor> tensors{torch::full({1}, pg->getRank() + 1, torch::kInt64)};
    pg->allreduce(tensors)->wait();
    return static_cast<long>(tensors[0].item<int64_t>());
  });
}

void print_line(const std::string& line) {
  const std::string whole = line + "\n";
  if (write(STDOUT_FILENO, whole.data(), whole.size()) < 0) std::abort();
}

int printing_errors(const std::function<void()>& f) {
  try {
    f();
  } catch (const dist::DistError& error) {
    print_line("rank " + launched_rank() + " " + class_of(error) + ": " + error.what());
  }
  return 0;
}

}  // namespace cpprun::test
