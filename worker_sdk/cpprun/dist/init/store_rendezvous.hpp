// Connects to the store through which the ranks of a plan rendezvous. Private to dist.
#pragma once

#include <chrono>
#include <string>

#include "cpprun/dist/init/init_plan.hpp"
#include "cpprun/dist/native.hpp"

namespace cpprun::dist {

struct StoreRendezvous {
  c10::intrusive_ptr<c10d::Store> store;  // with the prefix of the default group
  std::string place;                      // "the store at 10.0.0.1:29500", for messages
  bool is_host = false;                   // this process serves the store
};

// Throws DistTimeoutError or DistNetworkError with the place if nothing listens there within
// `timeout`, DistArgumentError if the folder is missing or the file cannot be locked.
StoreRendezvous connect_store(const InitPlan& plan, const Store& given,
                              std::chrono::milliseconds timeout);

// The keys of later default groups contain the round, and their count begins anew: a process that
// has been in earlier rounds and a new one then use the same keys. Ends the stores that this
// process served in the round before.
void begin_round_of_stores(int64_t round);

// Call it after the group's last use of a file store: the last rank removes the file.
void leave_file(const InitPlan& plan, c10d::Store& store);

}  // namespace cpprun::dist
