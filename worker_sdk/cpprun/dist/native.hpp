// The LibTorch objects behind the handles, for code that talks to c10d itself. Heavy: 4 s to
// compile.
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

// Throws DistStateError if the group (empty: the default one) is not there or was destroyed, or if
// this process does not belong to it.
c10::intrusive_ptr<c10d::ProcessGroup> native(const ProcessGroup& group = {});
// Throws DistArgumentError for an empty handle.
c10::intrusive_ptr<c10d::Store> native(const Store& store);
Store wrap(c10::intrusive_ptr<c10d::Store> store);

}  // namespace cpprun::dist
