// What a ProcessGroup handle stands for. Private to dist and to those that take `native(group)`.
//
// `pg` and `store` change once, when the group is destroyed: read them through native(group) or
// resolve(), which hold the lock and say why there is none.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cpprun/dist/collectives/group_health.hpp"
#include "cpprun/dist/native.hpp"

namespace cpprun::dist {

struct ProcessGroup::State {
  // Null: this process does not belong to the group, or the group was destroyed.
  c10::intrusive_ptr<c10d::ProcessGroup> pg;
  c10::intrusive_ptr<c10d::Store> store;  // with the group's prefix
  std::vector<int> ranks;                 // global ranks, in the order of this group's
  int rank = -1;                          // within this group
  std::string name;                       // as messages show it
  std::string backend;                    // as asked for: "gloo", "cpu:gloo,cuda:nccl"
  std::chrono::milliseconds timeout{};    // of each collective
  std::function<void()> leave;            // called once, when the group is destroyed; may be empty
  std::atomic<bool> destroyed{false};
  mutable std::mutex mutex;  // of pg and store
  GroupHealth health;        // has its own
};

// The group itself, or the default one for an empty handle. Throws DistStateError, which names
// `call`, when there is no default group, and when the group was destroyed.
std::shared_ptr<ProcessGroup::State> resolve(const ProcessGroup& group, const char* call);

// "group 0 (gloo, rank 1 of 2)": how messages name a group.
std::string describe(const ProcessGroup::State& state);

}  // namespace cpprun::dist
