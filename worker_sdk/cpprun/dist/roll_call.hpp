// Who is there while a group forms: a seat per rank in the group's store. Private to dist.
//
// The backend's own rendezvous knows neither who is missing nor that two processes took one rank.
// Seats are extra keys beside its own ("cpprun/..."), and nobody waits for another's seat: Python's
// ranks, which take none, can be among them.
#pragma once

#include <string>
#include <vector>

#include "cpprun/dist/native.hpp"
#include "cpprun/dist/watched_store.hpp"

namespace cpprun::dist {

struct RollCall {
  c10::intrusive_ptr<c10d::Store> store;  // with the group's prefix
  std::string call;                       // "init_process_group with env://"
  std::vector<int> ranks;                 // global, in the order of the group's
  int rank = -1;                          // within the group
  bool is_host = false;                   // this process serves the store
};

// Takes this rank's seat. Throws DistArgumentError if somebody else has it or sits in a world of
// another size, DistMismatchError if he has another list of ranks for this group.
void sign_in(const RollCall& roll);
// Tells the others to give up, and stays for a moment until they know if this process serves the
// store. Throws nothing.
void report_failure(const RollCall& roll, const std::string& text) noexcept;
// Ends a wait when another rank has reported a failure; says who is missing after half a minute.
WatchedStore::Between watch_for_failure(const RollCall& roll);
// Global ranks that have neither a seat nor a key of Gloo's. Empty if the store can't be asked.
std::vector<int> missing_ranks(const RollCall& roll) noexcept;

}  // namespace cpprun::dist
