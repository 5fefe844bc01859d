// Who is there while a group forms: a seat per rank in the group's store. Private to dist.
//
// The backend's own rendezvous knows neither who is missing nor that two processes took one rank.
// Seats are extra keys beside its own ("cpprun/..."), and nobody waits for another's seat: Python's
// ranks, which take none, can be among them.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "cpprun/dist/native.hpp"
#include "cpprun/dist/store/watched_store.hpp"

namespace cpprun::dist {

struct RankRegistration {
  c10::intrusive_ptr<c10d::Store> store;  // with the group's prefix
  std::string call;                       // "init_process_group with env://"
  std::vector<int> ranks;                 // global, in the order of the group's
  int rank = -1;                          // within the group
  bool is_host = false;                   // this process serves the store
};

// Takes this rank's seat, unless another rank has given up already (then: its error). Throws
// DistArgumentError if somebody else has it or sits in a world of another size, DistMismatchError
// if he has another list of ranks for this group.
void register_rank(const RankRegistration& registration);
// Tells the others to give up, which wakes them, and stays for a moment until they know if this
// process serves the store. Throws nothing.
void report_failure(const RankRegistration& registration,
                    const std::exception_ptr& failed) noexcept;
// Throws the error that another rank has reported, if any; keeps it in `others`, because Gloo makes
// a text out of it.
WatchedStore::Watch watch_other_ranks(const RankRegistration& registration,
                                      const std::shared_ptr<std::exception_ptr>& others);
// What another rank has reported; null: nothing, or the store can't be asked.
std::exception_ptr failure_of_other_ranks(const RankRegistration& registration) noexcept;
// Global ranks that have neither a seat nor a key of Gloo's. Empty if the store can't be asked.
std::vector<int> missing_ranks(const RankRegistration& registration) noexcept;

}  // namespace cpprun::dist
