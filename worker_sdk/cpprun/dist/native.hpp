// Access to the c10d objects behind the handles, for code that uses c10d directly. Costs 4 s of
// compile time.
#pragma once

#include <memory>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/dist/store.hpp"

namespace cpprun::dist {

struct Store::Native {
  c10::intrusive_ptr<c10d::Store> store;
};

// Empty handle: the default group. Throws DistStateError if the group does not exist or was
// destroyed, or if this process does not belong to it.
c10::intrusive_ptr<c10d::ProcessGroup> native(const ProcessGroup& group = {});
// Throws DistArgumentError for an empty handle.
c10::intrusive_ptr<c10d::Store> native(const Store& store);
Store wrap(c10::intrusive_ptr<c10d::Store> store);

}  // namespace cpprun::dist
