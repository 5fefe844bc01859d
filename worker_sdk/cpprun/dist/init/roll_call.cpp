#include "cpprun/dist/init/roll_call.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <thread>

#include "common/text.hpp"
#include "cpprun/dist/init/seat.hpp"

namespace cpprun::dist {
namespace {

using std::chrono::milliseconds;

constexpr const char* kFailed = "cpprun/failed";
constexpr const char* kFailedSeen = "cpprun/failed/seen";
constexpr const char* kShape = "cpprun/shape";
constexpr milliseconds kLinger{1'500};
constexpr milliseconds kPoll{20};
constexpr milliseconds kPatience{30'000};

// What Gloo of every program sets: the address of one rank.
std::string gloo_key(int rank) {
  return "cpu//0/" + std::to_string(rank);
}

std::vector<uint8_t> bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

std::string own_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return "process " + std::to_string(getpid()) + " on " + host.data();
}

// What this key was first set to, by whomever.
std::string first(c10d::Store& store, const std::string& key, const std::string& value) {
  const auto held = store.compareSet(key, bytes(""), bytes(value));
  return {held.begin(), held.end()};
}

// Default groups differ in their size only; lists of ranks are shown.
std::string shape_of(const std::vector<int>& ranks) {
  std::vector<std::string> words;
  bool is_world = true;
  for (size_t i = 0; i < ranks.size(); ++i) {
    words.push_back(std::to_string(ranks[i]));
    is_world = is_world && ranks[i] == static_cast<int>(i);
  }
  return is_world ? "world size " + std::to_string(ranks.size())
                  : "ranks " + text::join(words, ", ");
}

void take_seat(const RollCall& roll, const std::string& self) {
  const std::string holder = first(*roll.store, seat(roll.rank), self);
  if (holder == self) return;
  const std::string rank = std::to_string(roll.ranks[static_cast<size_t>(roll.rank)]);
  throw DistArgumentError(roll.call + ": rank " + rank + " is taken twice, by " + holder +
                          " and by " + self +
                          "; each process needs a rank of its own, and a store of an earlier run "
                          "can't be used again");
}

void compare_shape(const RollCall& roll, const std::string& self) {
  const std::string shape = shape_of(roll.ranks);
  const std::string rank = std::to_string(roll.ranks[static_cast<size_t>(roll.rank)]);
  const std::string held = first(*roll.store, kShape, shape + "|rank " + rank + " (" + self + ")");
  const size_t bar = held.find('|');
  if (held.substr(0, bar) == shape) return;
  const std::string text = roll.call + ": rank " + rank + " has " + shape + ", but " +
                           held.substr(bar + 1) + " has " + held.substr(0, bar);
  if (shape.starts_with("world") && held.starts_with("world")) throw DistArgumentError(text);
  throw DistMismatchError(text);
}

int seats_of_others(const RollCall& roll) {
  int taken = 0;
  for (int rank = 0; rank < static_cast<int>(roll.ranks.size()); ++rank) {
    if (rank != roll.rank && roll.store->check({seat(rank)})) ++taken;
  }
  return taken;
}

// A host that ended at once would take the bad news with it.
void linger(const RollCall& roll) {
  if (!roll.is_host) return;
  const int others = seats_of_others(roll);
  for (milliseconds waited{0}; waited < kLinger; waited += kPoll) {
    if (roll.store->add(kFailedSeen, 0) >= others) return;
    std::this_thread::sleep_for(kPoll);
  }
}

void tell_missing(const RollCall& roll) {
  std::vector<std::string> names;
  for (const int rank : missing_ranks(roll)) names.push_back(std::to_string(rank));
  std::fprintf(stderr, "cpprun: %s: still waiting for rank(s) %s\n", roll.call.c_str(),
               text::join(names, ", ").c_str());
}

// An error as it travels through the store: one letter for its class, then its text.
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

std::exception_ptr unpacked(const RollCall& roll, const std::string& packed_error) {
  const std::string text = roll.call + ": another rank gave up: " + packed_error.substr(1);
  switch (packed_error.front()) {
    case 'A':
      return std::make_exception_ptr(DistArgumentError(text));
    case 'M':
      return std::make_exception_ptr(DistMismatchError(text));
    case 'T':
      return std::make_exception_ptr(DistTimeoutError(text));
    default:
      return std::make_exception_ptr(DistBackendError(text));
  }
}

// Null if nobody reported anything.
std::exception_ptr reported(const RollCall& roll) {
  if (!roll.store->check({kFailed})) return nullptr;
  const auto value = roll.store->get(kFailed);
  roll.store->add(kFailedSeen, 1);
  return unpacked(roll, {value.begin(), value.end()});
}

// Sets what Gloo waits for. The value is some other rank's: Gloo of a Python rank, which does not
// look for failures, then fails to connect, while it would crash on one that is no address. A late
// rank overwrites its own key, but looks for failures before. Who waits has set his own.
void wake_others(const RollCall& roll) {
  const int size = static_cast<int>(roll.ranks.size());
  std::vector<uint8_t> address;
  for (int rank = 0; rank < size && address.empty(); ++rank) {
    if (roll.store->check({gloo_key(rank)})) address = roll.store->get(gloo_key(rank));
  }
  for (int rank = 0; rank < size && !address.empty(); ++rank) {
    if (!roll.store->check({gloo_key(rank)})) roll.store->set(gloo_key(rank), address);
  }
}

}  // namespace

void sign_in(const RollCall& roll) {
  const std::string self = own_name();
  if (const auto others = reported(roll)) std::rethrow_exception(others);
  try {
    take_seat(roll, self);
    compare_shape(roll, self);
  } catch (const c10::NotImplementedError&) {
    // A store of the user's own that can't compare and set: then nobody checks the seats.
  } catch (const DistError&) {
    report_failure(roll, std::current_exception());
    throw;
  }
}

void report_failure(const RollCall& roll, const std::exception_ptr& failed) noexcept {
  try {
    roll.store->compareSet(kFailed, bytes(""), bytes(packed(failed)));
    wake_others(roll);
    linger(roll);
  } catch (...) {
    // The store is gone, and with it everybody who would want to know.
  }
}

WatchedStore::Watch watch_others(const RollCall& roll,
                                 const std::shared_ptr<std::exception_ptr>& others) {
  const auto look = [roll, others] {
    *others = reported(roll);
    if (*others) std::rethrow_exception(*others);
  };
  return {kPatience, [roll] { tell_missing(roll); }, look};
}

std::exception_ptr failure_of_others(const RollCall& roll) noexcept {
  try {
    return reported(roll);
  } catch (...) {
    return nullptr;
  }
}

std::vector<int> missing_ranks(const RollCall& roll) noexcept {
  std::vector<int> missing;
  try {
    for (int rank = 0; rank < static_cast<int>(roll.ranks.size()); ++rank) {
      if (roll.store->check({seat(rank)}) || roll.store->check({gloo_key(rank)})) continue;
      missing.push_back(roll.ranks[static_cast<size_t>(rank)]);
    }
  } catch (...) {
    missing.clear();
  }
  return missing;
}

}  // namespace cpprun::dist
