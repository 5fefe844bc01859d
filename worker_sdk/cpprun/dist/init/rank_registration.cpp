#include "cpprun/dist/init/rank_registration.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <thread>

#include "cpprun/dist/group/group_state.hpp"
#include "cpprun/dist/init/rank_key.hpp"

namespace cpprun::dist {
namespace {

using std::chrono::milliseconds;

constexpr const char* kFailed = "cpprun/failed";
constexpr const char* kFailedSeen = "cpprun/failed/seen";
constexpr const char* kShape = "cpprun/shape";
constexpr milliseconds kPeersKnowTimeout{1'500};
constexpr milliseconds kPoll{20};
constexpr milliseconds kReportMissingAfter{30'000};

// Gloo's own key, set by every program: the address of one rank.
std::string gloo_key(int rank) { return "cpu//0/" + std::to_string(rank); }

std::string own_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return "process " + std::to_string(getpid()) + " on " + host.data();
}

// Default groups differ in their size only; other groups show their ranks.
std::string shape_of(const std::vector<int>& ranks) {
  bool is_world = true;
  for (size_t i = 0; i < ranks.size(); ++i) is_world &= ranks[i] == static_cast<int>(i);
  return is_world ? "world size " + std::to_string(ranks.size()) : "ranks " + listed(ranks);
}

// c10d's compareSet returns the value that the key has afterwards.
void claim_rank(const RankRegistration& registration, const std::string& self) {
  const std::string holder = registration.store->compareSet(rank_key(registration.rank), "", self);
  if (holder == self) return;
  const std::string rank =
      std::to_string(registration.ranks[static_cast<size_t>(registration.rank)]);
  throw DistArgumentError(registration.call + ": rank " + rank + " is taken twice, by " + holder +
                          " and by " + self +
                          "; each process needs a rank of its own, and a store of an earlier run "
                          "can't be used again");
}

void compare_shape(const RankRegistration& registration, const std::string& self) {
  const std::string shape = shape_of(registration.ranks);
  const std::string rank =
      std::to_string(registration.ranks[static_cast<size_t>(registration.rank)]);
  const std::string held =
      registration.store->compareSet(kShape, "", shape + "|rank " + rank + " (" + self + ")");
  const size_t bar = held.find('|');
  if (held.substr(0, bar) == shape) return;
  const std::string text = registration.call + ": rank " + rank + " has " + shape + ", but " +
                           held.substr(bar + 1) + " has " + held.substr(0, bar);
  if (shape.starts_with("world") && held.starts_with("world")) throw DistArgumentError(text);
  throw DistMismatchError(text);
}

int registered_peers(const RankRegistration& registration) {
  int taken = 0;
  for (int rank = 0; rank < static_cast<int>(registration.ranks.size()); ++rank) {
    if (rank != registration.rank && registration.store->check({rank_key(rank)})) ++taken;
  }
  return taken;
}

// If the host of the store exits at once, the other ranks cannot read the failure.
void wait_until_peers_know(const RankRegistration& registration) {
  if (!registration.is_host) return;
  const int others = registered_peers(registration);
  for (milliseconds waited{0}; waited < kPeersKnowTimeout; waited += kPoll) {
    if (registration.store->add(kFailedSeen, 0) >= others) return;
    std::this_thread::sleep_for(kPoll);
  }
}

void report_missing(const RankRegistration& registration) {
  std::fprintf(stderr, "cpprun: %s: still waiting for rank(s) %s\n", registration.call.c_str(),
               listed(missing_ranks(registration)).c_str());
}

// The form of an error in the store: one letter for its class, then its text.
std::string packed(const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const DistArgumentError& error) {
    return std::string("A") + error.what();
  } catch (const DistMismatchError& error) {
    return std::string("M") + error.what();
  } catch (const DistTimeoutError& error) {
    return std::string("T") + error.what();
  } catch (const std::exception& error) {
    return std::string("B") + error.what();
  }
}

std::exception_ptr unpacked(const RankRegistration& registration, const std::string& packed_error) {
  const std::string text = registration.call + ": another rank gave up: " + packed_error.substr(1);
  switch (packed_error.front()) {
    case 'A': return std::make_exception_ptr(DistArgumentError(text));
    case 'M': return std::make_exception_ptr(DistMismatchError(text));
    case 'T': return std::make_exception_ptr(DistTimeoutError(text));
    default: return std::make_exception_ptr(DistBackendError(text));
  }
}

// Null if no rank has reported a failure.
std::exception_ptr reported(const RankRegistration& registration) {
  if (!registration.store->check({kFailed})) return nullptr;
  const std::string error = registration.store->get_to_str(kFailed);
  registration.store->add(kFailedSeen, 1);
  return unpacked(registration, error);
}

// Sets the keys that Gloo waits for, to the address of some other rank: Gloo of a Python rank,
// which does not look for failures, then fails to connect; a value that is no address would crash
// it. A late rank overwrites its own key, but looks for failures before. A waiting rank has set its
// own key.
void wake_others(const RankRegistration& registration) {
  const int size = static_cast<int>(registration.ranks.size());
  std::vector<uint8_t> address;
  for (int rank = 0; rank < size && address.empty(); ++rank) {
    if (registration.store->check({gloo_key(rank)}))
      address = registration.store->get(gloo_key(rank));
  }
  for (int rank = 0; rank < size && !address.empty(); ++rank) {
    if (!registration.store->check({gloo_key(rank)}))
      registration.store->set(gloo_key(rank), address);
  }
}

}  // namespace

void register_rank(const RankRegistration& registration) {
  const std::string self = own_name();
  if (const auto others = reported(registration)) std::rethrow_exception(others);
  try {
    claim_rank(registration, self);
    compare_shape(registration, self);
  } catch (const c10::NotImplementedError&) {
    // A user's store without compare-and-set: ranks are not checked then.
  } catch (const DistError&) {
    report_failure(registration, std::current_exception());
    throw;
  }
}

void report_failure(const RankRegistration& registration,
                    const std::exception_ptr& failed) noexcept {
  try {
    registration.store->compareSet(kFailed, "", packed(failed));
    wake_others(registration);
    wait_until_peers_know(registration);
  } catch (...) {
    // The store is gone, and with it every rank that waits.
  }
}

WatchedStore::Watch watch_other_ranks(const RankRegistration& registration,
                                      const std::shared_ptr<std::exception_ptr>& others) {
  const auto check_failures = [registration, others] {
    *others = reported(registration);
    if (*others) std::rethrow_exception(*others);
  };
  return {kReportMissingAfter, [registration] { report_missing(registration); }, check_failures};
}

std::exception_ptr failure_of_other_ranks(const RankRegistration& registration) noexcept {
  try {
    return reported(registration);
  } catch (...) {
    return nullptr;
  }
}

std::vector<int> missing_ranks(const RankRegistration& registration) noexcept {
  std::vector<int> missing;
  try {
    for (int rank = 0; rank < static_cast<int>(registration.ranks.size()); ++rank) {
      if (registration.store->check({rank_key(rank)}) ||
          registration.store->check({gloo_key(rank)}))
        continue;
      missing.push_back(registration.ranks[static_cast<size_t>(rank)]);
    }
  } catch (...) {
    missing.clear();
  }
  return missing;
}

}  // namespace cpprun::dist
