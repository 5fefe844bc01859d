// The state behind a ProcessGroup handle. Private to the SDK.
//
// `pg` and `store` become null when the group is destroyed: read them through native(group), or
// under `mutex` after resolve().
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cpprun/dist/collectives/group_health.hpp"
#include "cpprun/dist/native.hpp"

namespace cpprun::dist {

struct ProcessGroup::State {
  // Null: this process is not a member, or the group is destroyed.
  c10::intrusive_ptr<c10d::ProcessGroup> pg;
  c10::intrusive_ptr<c10d::Store> store;  // with the group's prefix
  std::vector<int> ranks;                 // global ranks, by group rank
  int rank = -1;                          // within this group
  std::string name;                       // for messages
  std::string backend;                    // resolved: "gloo", "cpu:gloo,cuda:nccl"
  std::chrono::milliseconds timeout{};    // of each collective
  std::optional<c10::Device> device;      // of this rank's collectives; none: the CPU, or any
  std::function<void()> leave;            // called once when the group is destroyed; may be empty
  std::atomic<bool> destroyed{false};
  mutable std::mutex mutex;  // protects pg and store
  GroupHealth health;        // has its own lock

  bool has_nccl() const { return backend.find("nccl") != std::string::npos; }
};

// The group, or the default group for an empty handle. Throws DistStateError with the name of
// `call` if there is no default group or the group was destroyed.
std::shared_ptr<ProcessGroup::State> resolve(const ProcessGroup& group, const char* call);

// "group 0 (gloo, rank 1 of 2)": how messages name a group.
std::string describe(const ProcessGroup::State& state);
std::string listed(const std::vector<int>& ranks);  // "1, 3"

}  // namespace cpprun::dist
