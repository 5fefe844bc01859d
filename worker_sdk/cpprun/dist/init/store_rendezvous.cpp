#include "cpprun/dist/init/store_rendezvous.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <vector>

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "common/machine/unique_fd.hpp"
#include "cpprun/dist/backend/error_translation.hpp"
#include "cpprun/dist/group/group_sockets.hpp"
#include "cpprun/dist/init/local_address.hpp"

namespace cpprun::dist {
namespace {

constexpr const char* kLeft = "cpprun/left";
// Of a worker that may survive: between two attempts it looks whether its round has ended. Less
// than the agent's --regroup-timeout of 10 s, after which the worker is stopped.
constexpr std::chrono::milliseconds kAttemptTakes{3'000};

using Stores = std::vector<c10::intrusive_ptr<c10d::Store>>;

struct Rendezvous {
  std::mutex mutex;
  // Number of earlier rendezvous of this process (in this round). All ranks make their default
  // groups in the same order, so the numbers agree; from the second on they are a prefix, because
  // the old keys may still exist.
  int count = 0;
  std::optional<int64_t> round;
  // Stores that this process serves until its round ends or it exits: other ranks may leave a group
  // later than this one.
  Stores served;
  Stores files;
};

// Never destroyed, because other threads may use the stores while the process exits.
Rendezvous& own_rendezvous() {
  static auto& own = *new Rendezvous;
  return own;
}

void keep(Stores Rendezvous::*list, const c10::intrusive_ptr<c10d::Store>& store) {
  const std::lock_guard lock(own_rendezvous().mutex);
  (own_rendezvous().*list).push_back(store);
}

// Of the keys of the next default group. Empty: they are Python's.
std::string next_prefix() {
  const std::lock_guard lock(own_rendezvous().mutex);
  const int number = own_rendezvous().count++;
  const auto& round = own_rendezvous().round;
  std::string prefix = round ? "cpprun/round/" + std::to_string(*round) : "";
  if (number > 0)
    prefix += (prefix.empty() ? "cpprun/meeting/" : "/meeting/") + std::to_string(number);
  return prefix;
}

c10::intrusive_ptr<c10d::Store> with_prefix(const std::string& prefix,
                                            const c10::intrusive_ptr<c10d::Store>& store) {
  return c10::make_intrusive<c10d::PrefixStore>(prefix, store);
}

c10::intrusive_ptr<c10d::Store> with_group_prefix(c10::intrusive_ptr<c10d::Store> store) {
  const std::string prefix = next_prefix();
  if (!prefix.empty()) store = with_prefix(prefix, store);
  return with_prefix("default_pg", store);
}

void expect_listener(const InitPlan& plan, const std::string& place,
                     std::chrono::milliseconds timeout) {
  const std::string why = wait_for_listener(plan.host, plan.port, timeout);
  if (why.empty()) return;
  throw DistTimeoutError("init_process_group with " + plan.shown + ": rank " +
                         std::to_string(plan.rank) + " could not reach " + place + " within " +
                         std::to_string(timeout.count()) + " ms (" + why + "); " +
                         (plan.is_hosted_elsewhere ? "the launcher's agent serves it"
                                                   : "rank 0 serves it: has it started?"));
}

// A client that has not registered yet. TCPStore tries for all of its timeout to reach a server
// that has died, and nothing wakes it.
c10::intrusive_ptr<c10d::TCPStore> connect_client(const std::string& host,
                                                  c10d::TCPStoreOptions options) {
  using Clock = std::chrono::steady_clock;
  const auto timeout = options.timeout;
  const auto end = Clock::now() + timeout;
  options.timeout = std::min(timeout, kAttemptTakes);
  options.waitWorkers = false;
  while (true) {
    try {
      auto store = c10::make_intrusive<c10d::TCPStore>(host, options);
      store->setTimeout(timeout);
      return store;
    } catch (const c10::DistNetworkError&) {
      if (GroupSockets::are_shut_down() || Clock::now() > end) throw;
    }
  }
}

c10::intrusive_ptr<c10d::TCPStore> join_store(const std::string& host,
                                              const c10d::TCPStoreOptions& options) {
  const bool may_be_woken = !options.isServer && GroupSockets::are_followed();
  c10::intrusive_ptr<c10d::TCPStore> store;
  {
    const GroupSockets::Appearing sockets;  // known before the wait, which a regroup ends
    store = may_be_woken ? connect_client(host, options)
                         : c10::make_intrusive<c10d::TCPStore>(host, options);
  }
  if (may_be_woken) store->waitForWorkers();
  return store;
}

StoreRendezvous connect_tcp(const InitPlan& plan, std::chrono::milliseconds timeout) {
  StoreRendezvous rendezvous;
  rendezvous.is_host = plan.rank == 0 && !plan.is_hosted_elsewhere;
  rendezvous.place = "the store at " + plan.host + ":" + std::to_string(plan.port);
  if (!rendezvous.is_host) expect_listener(plan, rendezvous.place, timeout);
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(plan.port);
  options.isServer = rendezvous.is_host;
  options.multiTenant = true;
  options.timeout = timeout;
  // A Python rank 0 waits until all clients have registered, which c10d's clients do only with
  // waitWorkers. A host of this SDK does not wait here: the group's registration does, and names
  // missing ranks.
  options.numWorkers = static_cast<size_t>(plan.world_size);
  options.waitWorkers = !rendezvous.is_host;
  const char* way = rendezvous.is_host ? ": rank 0 can't serve " : ": can't use ";
  translated("init_process_group with " + plan.shown + way + rendezvous.place,
             [&] { rendezvous.store = join_store(plan.host, options); });
  if (rendezvous.is_host) keep(&Rendezvous::served, rendezvous.store);
  return rendezvous;
}

[[noreturn]] void refuse_file(const InitPlan& plan, const std::string& why) {
  throw DistArgumentError("init_process_group with " + plan.shown + ": " + why);
}

// FileStore would wait forever for a missing folder, and throw without naming the path.
void check_file(const InitPlan& plan) {
  const std::filesystem::path folder = std::filesystem::path(plan.path).parent_path();
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    refuse_file(plan, "there is no folder '" + folder.string() + "'; make it first");
  }
  const UniqueFd file(open(plan.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file.is_open()) refuse_file(plan, "can't open '" + plan.path + "': " + std::strerror(errno));
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0 || errno == EWOULDBLOCK) return;
  refuse_file(plan, "can't lock '" + plan.path + "': " + std::strerror(errno) +
                        "; its file system must support flock");
}

StoreRendezvous connect_file(const InitPlan& plan, std::chrono::milliseconds timeout) {
  check_file(plan);
  StoreRendezvous rendezvous;
  rendezvous.place = "the file '" + plan.path + "'";
  // -1: FileStore's own count of users stays wrong once a user has died; see leave_file.
  c10::intrusive_ptr<c10d::Store> file = c10::make_intrusive<c10d::FileStore>(plan.path, -1);
  file->setTimeout(timeout);
  // FileStore's destructor writes to the file, and would recreate it after the last rank removed
  // it.
  keep(&Rendezvous::files, file);
  rendezvous.store = plan.attempt.empty() ? file : with_prefix(plan.attempt, file);
  return rendezvous;
}

}  // namespace

void begin_round_of_stores(int64_t round) {
  Stores ended;  // destroyed after the lock: a store's end waits for its thread
  const std::lock_guard lock(own_rendezvous().mutex);
  own_rendezvous().count = 0;
  own_rendezvous().round = round;
  ended.swap(own_rendezvous().served);
}

void leave_file(const InitPlan& plan, c10d::Store& store) {
  if (plan.method != InitPlan::Method::File) return;
  if (store.add(kLeft, 1) >= plan.world_size) unlink(plan.path.c_str());
}

StoreRendezvous connect_store(const InitPlan& plan, const Store& given,
                              std::chrono::milliseconds timeout) {
  if (plan.method == InitPlan::Method::Given) {
    // As in Python: no prefix, and the store's own timeout.
    return {native(given), "the given store", false};
  }
  StoreRendezvous rendezvous = plan.method == InitPlan::Method::Tcp ? connect_tcp(plan, timeout)
                                                                    : connect_file(plan, timeout);
  rendezvous.store = with_group_prefix(std::move(rendezvous.store));
  return rendezvous;
}

}  // namespace cpprun::dist
