/// @file
/// Exceptions of `dist::`, thrown because LibTorch's calls throw too.
///
/// Each text names the call, the group, this rank and, if known, the ranks at fault. Python
/// counterparts: torch.distributed.DistError and its subclasses.
#pragma once

#include <stdexcept>

namespace cpprun::dist {

/// The base class: catch it to catch every error of `dist::`.
class DistError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// A wrong argument: a rank out of range, `store` together with `init_method`, an unknown group.
class DistArgumentError : public DistError {
  using DistError::DistError;
};
/// The group cannot be used: not initialised, initialised twice, broken or destroyed.
class DistStateError : public DistError {
  using DistError::DistError;
};
/// A peer died or its connection broke.
class DistNetworkError : public DistError {
  using DistError::DistError;
};
/// A call did not end within its timeout.
class DistTimeoutError : public DistError {
  using DistError::DistError;
};
/// The backend has no such call, or not for this dtype or reduce operation.
class DistUnsupportedError : public DistError {
  using DistError::DistError;
};
/// Ranks disagree: different call, shape, dtype, count or parameters. Names two ranks.
class DistMismatchError : public DistError {
  using DistError::DistError;
};
/// Any other error of the backend or the store.
class DistBackendError : public DistError {
  using DistError::DistError;
};

}  // namespace cpprun::dist
