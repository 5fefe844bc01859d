// Registers the ranks while a group forms: one key per rank in the group's store. Private to dist.
//
// The backend's own rendezvous knows neither which ranks are missing nor that two processes use the
// same rank. The keys are additional ("cpprun/..."), and no rank waits for another's key, because
// Python ranks set none.
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
  std::vector<int> ranks;                 // global ranks, by group rank
  int rank = -1;                          // within the group
  bool is_host = false;                   // this process serves the store
};

// Claims this rank's key, unless another rank has failed already; then throws that rank's error.
// Throws DistArgumentError if another process has the same rank or another world size,
// DistMismatchError if it has another list of ranks for this group.
void register_rank(const RankRegistration& registration);
// Reports `failed` to the other ranks and wakes those that wait. If this process serves the store,
// it stays for a moment until they have read it. Does not throw.
void report_failure(const RankRegistration& registration,
                    const std::exception_ptr& failed) noexcept;
// Throws the error that another rank has reported, if any. Keeps it in `others`, because Gloo turns
// the exception into text.
WatchedStore::Watch watch_other_ranks(const RankRegistration& registration,
                                      const std::shared_ptr<std::exception_ptr>& others);
// The error that another rank has reported. Null: none, or the store is unreachable.
std::exception_ptr failure_of_other_ranks(const RankRegistration& registration) noexcept;
// Global ranks that have set neither this SDK's key nor Gloo's. Empty if the store is unreachable.
std::vector<int> missing_ranks(const RankRegistration& registration) noexcept;

}  // namespace cpprun::dist
