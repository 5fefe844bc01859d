#include "cpprun/elastic/state_sharing.hpp"

#include <ATen/ATen.h>

#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/text.hpp"
#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/objects.hpp"
#include "cpprun/elastic/donor.hpp"
#include "cpprun/elastic/elastic_runner.hpp"
#include "cpprun/elastic/memory_storages.hpp"
#include "cpprun/snapshot/job_history.hpp"
#include "cpprun/snapshot/state/tracked.hpp"
#include "snapshot_files/pickle/pickle.hpp"

namespace cpprun::detail {
namespace {

using pickle::Dict;
using snapshot::Tracked;

constexpr char kBetweenOrders = '\n';  // an order has digits, spaces and semicolons

std::vector<StateClaim> gather_claims(const ElasticRunner& runner) {
  using History = std::tuple<int64_t, double, std::map<std::string, double>>;
  using Sent = std::tuple<int64_t, bool, std::string, History>;
  const std::string orders = text::join(runner.bucket_orders(), std::string(1, kBetweenOrders));
  const auto own = snapshot::own_job_history().record(snapshot::steady_seconds());
  const auto all =
      dist::all_gather_object<Sent>({runner.completed(), runner.is_torn(), orders,
                                     History(own.rollbacks, own.seconds, own.saved_at)});
  std::vector<StateClaim> claims;
  for (const auto& [completed, is_torn, of_rank, history] : all) {
    const auto& [rollbacks, seconds, saved_at] = history;
    claims.push_back({completed, is_torn, of_rank, {rollbacks, seconds, saved_at}});
  }
  return claims;
}

void report_lost(const Donor& donor) {
  if (donor.lost_steps == 0 || dist::get_rank() != 0) return;
  std::fprintf(stderr,
               "cpprun: all workers that had completed %lld steps were interrupted between the "
               "optimizer step and the commit; step %lld is the newest one whose state is whole\n",
               static_cast<long long>(donor.completed + donor.lost_steps),
               static_cast<long long>(donor.completed));
}

// The bytes of each storage follow, in this order.
std::string describe(const Dict& objects, const std::vector<snapshot::Storage>& storages) {
  Dict sizes;
  for (const auto& each : storages) sizes.pairs.emplace_back(each.name, each.bytes.numel());
  return pickle::write(Dict{{{"objects", objects}, {"storages", std::move(sizes)}}});
}

void send_state(const std::vector<Tracked>& tracked) {
  snapshot::Capture capture;
  Dict objects;
  for (const Tracked& each : tracked) objects.pairs.emplace_back(each.name, each.save(capture));
  const auto storages = capture.take_storages();
  std::vector<std::string> description{describe(objects, storages)};
  const int own = dist::get_rank();
  dist::broadcast_bytes(description, own);
  for (const auto& each : storages) {
    if (each.bytes.numel() > 0) dist::broadcast(each.bytes.to(dist::local_device()), own);
  }
}

struct ReceivedState {
  pickle::Value objects;
  MemoryStorages storages;
};

// `keeps` false: the state goes to other ranks, and is dropped here.
ReceivedState receive_state(int donor, bool keeps) {
  std::vector<std::string> description(1);
  dist::broadcast_bytes(description, donor);
  const auto read = pickle::read(description.front());
  if (!read) throw std::runtime_error("elastic: the donor's state: " + read.error().text);
  const auto* objects = read->find("objects");
  const auto* sizes = read->find_as<Dict>("storages");
  if (objects == nullptr || sizes == nullptr) {
    throw std::runtime_error("elastic: the donor's state has no objects");
  }
  ReceivedState state{*objects, {}};
  for (const auto& [name, size] : sizes->pairs) {
    const int64_t bytes = snapshot::as<int64_t>(size, "the size of a storage");
    at::Tensor storage =
        at::empty({bytes}, at::TensorOptions(at::kByte).device(dist::local_device()));
    if (bytes > 0) dist::broadcast(storage, donor);
    if (keeps) state.storages.add(snapshot::as<std::string>(name, "a name"), storage.cpu());
  }
  return state;
}

void load_state(const std::vector<Tracked>& tracked, const ReceivedState& state, int donor) {
  for (const Tracked& each : tracked) {
    const pickle::Value* own = state.objects.find(each.name);
    if (own == nullptr) {
      throw std::runtime_error("elastic: rank " + std::to_string(donor) + " has no '" + each.name +
                               "': all ranks track the same objects");
    }
    each.load(*own, state.storages);
  }
}

// Brings this rank to the donor's state.
void take_state(ElasticRunner& runner, const std::vector<Tracked>& tracked, const Donor& donor) {
  if (donor.rank == dist::get_rank()) return send_state(tracked);
  const bool is_behind = runner.is_torn() || runner.completed() != donor.completed;
  const ReceivedState received = receive_state(donor.rank, is_behind);
  if (!is_behind) return;
  runner.set_torn(true);  // if this fails, a part of the objects may have changed
  load_state(tracked, received, donor.rank);
  runner.set_completed(donor.completed);
  runner.set_torn(false);
}

}  // namespace

int64_t share_state(ElasticRunner& runner, ElasticState& state) {
  const std::vector<StateClaim> claims = gather_claims(runner);
  const Donor donor = choose_donor(claims);
  report_lost(donor);
  if (donor.is_needed) take_state(runner, state.objects(), donor);
  const StateClaim& claim = claims[static_cast<size_t>(donor.rank)];
  if (donor.completed > 0) {
    snapshot::own_job_history().keep_state(claim.history, snapshot::own_restarts(),
                                           snapshot::steady_seconds());
  }
  const std::string& orders = claim.bucket_orders;
  runner.set_bucket_orders(orders.empty() ? std::vector<std::string>{}
                                          : text::split(orders, kBetweenOrders));
  state.bind_samplers(dist::get_world_size(), dist::get_rank());
  return donor.completed;
}

}  // namespace cpprun::detail
