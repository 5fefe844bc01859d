// What goes wrong between ranks, as exceptions: LibTorch's calls throw, so those built on them do.
//
// Each text names the call, the group, this rank and, where they are known, the ranks at fault.
// Python counterparts: torch.distributed.DistError and its children.
#pragma once

#include <stdexcept>

namespace cpprun::dist {

// Base of all: catch this to catch everything of `dist::`.
class DistError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Arguments that can't work: rank out of range, `store` together with `init_method`, no such group.
class DistArgumentError : public DistError {
  using DistError::DistError;
};
// The group can't be used now: not initialised, initialised twice, destroyed.
class DistStateError : public DistError {
  using DistError::DistError;
};
// A peer died or its connection broke.
class DistNetworkError : public DistError {
  using DistError::DistError;
};
// A call did not end within its timeout.
class DistTimeoutError : public DistError {
  using DistError::DistError;
};
// The backend has no such call, or not for this dtype or reduce operation.
class DistUnsupportedError : public DistError {
  using DistError::DistError;
};
// Ranks disagree: different call, shape, dtype, count or parameters. Names two ranks.
class DistMismatchError : public DistError {
  using DistError::DistError;
};
// Anything else that the backend or the store said.
class DistBackendError : public DistError {
  using DistError::DistError;
};

}  // namespace cpprun::dist
