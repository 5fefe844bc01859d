// The store where the ranks of a plan meet. Private to dist.
#pragma once

#include <chrono>
#include <string>

#include "cpprun/dist/init/init_plan.hpp"
#include "cpprun/dist/native.hpp"

namespace cpprun::dist {

struct StoreRendezvous {
  c10::intrusive_ptr<c10d::Store> store;  // with the prefix of the default group's keys
  std::string place;                      // "the store at 10.0.0.1:29500", for messages
  bool is_host = false;                   // this process serves it
};

// Throws DistTimeoutError or DistNetworkError, which names the place, when nobody is there within
// `timeout`; DistArgumentError for a folder that is missing or a file that can't be locked.
StoreRendezvous connect_store(const InitPlan& plan, const Store& given,
                              std::chrono::milliseconds timeout);

// After the last use of a file's store by this group: the last of the ranks removes the file.
void leave_file(const InitPlan& plan, c10d::Store& store);

}  // namespace cpprun::dist
