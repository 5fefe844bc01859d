#include "cpprun/snapshot/snapshot_comm.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "common/check.hpp"
#include "common/limits/snapshots.hpp"
#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/native.hpp"
#include "cpprun/dist/objects.hpp"
#include "cpprun/dist/process_group.hpp"
#include "cpprun/worker/environment.hpp"

namespace cpprun::snapshot {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSlice{500};

Error peer_error(const std::string& key, const char* what) {
  return {ErrorKind::Network, "ranks can't agree on a snapshot (" + key + "): " + what};
}

at::Tensor on_device(const std::vector<int64_t>& numbers) {
  return at::tensor(numbers, at::TensorOptions(at::kLong)).to(dist::local_device());
}

std::vector<int64_t> from_device(const at::Tensor& tensor) {
  const at::Tensor here = tensor.cpu();
  const auto* first = here.const_data_ptr<int64_t>();
  return {first, first + here.numel()};
}

}  // namespace

SnapshotComm SnapshotComm::here() {
  SnapshotComm ranks;
  if (dist::is_initialized()) {
    ranks.rank_ = dist::get_rank();
    ranks.world_ = dist::get_world_size();
    return ranks;
  }
  const Result<worker::Environment>& own = worker::environment();
  if (own && own->world_size > 1) {
    throw std::logic_error(
        "a Snapshot was made before the process group: call "
        "dist::init_process_group() first");
  }
  return ranks;
}

NodeRanks SnapshotComm::node() const {
  const worker::Environment& own = worker::environment_or_default();
  return {rank_ - own.local_rank, own.local_world_size};
}

std::vector<std::string> SnapshotComm::gather(const std::string& text) const {
  if (world_ == 1) return {text};
  return dist::all_gather_bytes(text);
}

std::vector<int64_t> SnapshotComm::highest(std::vector<int64_t> numbers) const {
  if (world_ == 1) return numbers;
  const at::Tensor tensor = on_device(numbers);
  dist::all_reduce(tensor, dist::ReduceOp::MAX);
  return from_device(tensor);
}

std::vector<int64_t> SnapshotComm::from_first(std::vector<int64_t> numbers) const {
  if (world_ == 1) return numbers;
  const at::Tensor tensor = on_device(numbers);
  dist::broadcast(tensor, 0);
  return from_device(tensor);
}

dist::Store SnapshotComm::connect() const {
  if (world_ == 1) return {};
  return dist::wrap(dist::native(dist::default_group().store())->clone());
}

Status StoreChannel::set(const std::string& key, const std::string& value) {
  own_values_[key] = store_ ? std::string() : value;
  if (!store_) return {};
  try {
    store_.set(prefix_ + key, value);
    return {};
  } catch (const std::exception& error) {
    return peer_error(key, error.what());
  }
}

Result<std::string> StoreChannel::get(const std::string& key) {
  if (!store_) {
    const auto found = own_values_.find(key);
    if (found == own_values_.end()) return peer_error(key, "no rank has sent it");
    return found->second;
  }
  const auto end = steady_clock::now() + limits::kSnapshotShardsTimeout;
  for (;;) {
    try {
      store_.wait({prefix_ + key}, kSlice);
      return store_.get(prefix_ + key);
    } catch (const dist::DistTimeoutError&) {
      if (gives_up_.load()) return peer_error(key, "this process ends");
      if (steady_clock::now() > end) return peer_error(key, "a rank did not answer in time");
    } catch (const std::exception& error) {
      return peer_error(key, error.what());
    }
  }
}

void StoreChannel::delete_keys() {
  if (!store_) return;
  try {
    for (const auto& [key, value] : own_values_) store_.delete_key(prefix_ + key);
  } catch (const std::exception&) {
    return;  // the store ends with its round
  }
}

int Group::place_of(int rank) const {
  const auto found = std::find(members.begin(), members.end(), rank);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

const std::vector<int>& Group::node_of(int rank) const {
  const auto found = std::ranges::find_if(
      nodes, [&](const std::vector<int>& node) { return std::ranges::count(node, rank) > 0; });
  CPPRUN_CHECK(found != nodes.end());
  return *found;
}

bool Group::serves_memory() const {
  return is_single_file || std::ranges::all_of(nodes, [&](const std::vector<int>& node) {
           return node.size() == nodes.front().size();
         });
}

std::vector<int> Group::writers() const {
  if (!serves_memory()) return members;
  std::vector<int> ranks;
  for (size_t local = 0; local < nodes.front().size(); ++local) {
    for (const std::vector<int>& node : nodes) ranks.push_back(node[local]);
  }
  return ranks;
}

Share Group::share_of(int rank, bool in_memory) const {
  if (is_single_file) {
    const int keeper = in_memory ? node_of(rank).front() : leader();
    return {1, 0, rank == keeper ? 1 : 0, rank == leader() ? 0 : -1};
  }
  const std::vector<int> ranks = writers();
  const auto written = static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
  const int count = in_memory && serves_memory() ? static_cast<int>(nodes.size()) : 1;
  const int from = written / count * count;
  return {static_cast<int>(ranks.size()), from, from + count, written};
}

}  // namespace cpprun::snapshot
