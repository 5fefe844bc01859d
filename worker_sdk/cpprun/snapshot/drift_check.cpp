#include "cpprun/snapshot/drift_check.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>

#include "snapshot_files/archive/crc32.hpp"

namespace cpprun::snapshot {
namespace {

constexpr int64_t kPartBytes = 1 << 20;
constexpr size_t kDigits = 8;  // of a checksum

uint32_t checksum(const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().cpu().contiguous();
  return archive::crc32({static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()});
}

}  // namespace

bool DriftCheck::differs(std::vector<NamedParameter> parameters, int64_t step) {
  if (comm_.world() == 1) return false;
  std::erase_if(parameters, [](const auto& each) { return each.tensor.layout() != at::kStrided; });
  const uint64_t number = calls_++;
  compare(number == 0 ? all(parameters) : part(parameters, number - 1), step);
  return differs_;
}

DriftCheck::Sample DriftCheck::all(const std::vector<NamedParameter>& parameters) {
  Sample sample;
  for (const auto& [name, tensor] : parameters) {
    sample.names.push_back(name);
    sample.checksums += archive::crc32_text(checksum(tensor));
  }
  return sample;
}

DriftCheck::Sample DriftCheck::part(const std::vector<NamedParameter>& parameters,
                                    uint64_t number) {
  if (parameters.empty()) return {};
  const auto& [name, tensor] = parameters[number % parameters.size()];
  if (!tensor.is_contiguous() || tensor.numel() == 0) return {};
  const int64_t most = std::max<int64_t>(kPartBytes / static_cast<int64_t>(tensor.itemsize()), 1);
  const int64_t parts = (tensor.numel() + most - 1) / most;
  const int64_t first = static_cast<int64_t>(number / parameters.size()) % parts * most;
  const at::Tensor values =
      tensor.detach().view({-1}).narrow(0, first, std::min(most, tensor.numel() - first));
  return {{name}, archive::crc32_text(checksum(values))};
}

// Ranks that agree, the usual case, exchange two numbers. Ranks that do not may have a folder each.
void DriftCheck::compare(const Sample& own, int64_t step) {
  const auto sum = static_cast<int64_t>(archive::crc32(archive::bytes_of(own.checksums)));
  const std::vector<int64_t> highest = comm_.highest({sum, -sum});
  if (highest[0] == -highest[1]) return;
  const std::vector<std::string> of_ranks = comm_.gather(own.checksums);
  const Group& group = group_.get();
  const std::string& first = of_ranks[static_cast<size_t>(group.leader())];
  for (const int other : group.members) {
    const std::string& others = of_ranks[static_cast<size_t>(other)];
    if (others.size() != first.size()) continue;  // another model: the save itself fails
    for (size_t i = 0; i < own.names.size(); ++i) {
      if (others.compare(i * kDigits, kDigits, first, i * kDigits, kDigits) == 0) continue;
      if (!differs_ && prints_ && comm_.rank() == group.leader()) {
        std::fprintf(stderr,
                     "cpprun: hint: at step %lld parameter '%s' is not the same on ranks %d and "
                     "%d: the snapshot that they write together has the whole state from rank %d, "
                     "and a resumed run will not continue exactly. DistributedDataParallel keeps "
                     "parameters the same; ranks that train apart need a .dir each (.hints = false "
                     "silences this)\n",
                     static_cast<long long>(step), own.names[i].c_str(), group.leader(), other,
                     group.leader());
      }
      differs_ = true;
      return;
    }
  }
}

}  // namespace cpprun::snapshot
