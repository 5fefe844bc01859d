// All exit codes of cpprun and cpprunctl. docs/reference/exit-codes.md and packaging/man/cpprun.1
// show the same table; tests/integration/test_exit_codes.py compares the three.
#pragma once

namespace cpprun {

// All workers of all nodes exited with 0. For cpprunctl: the command succeeded.
inline constexpr int kSuccess = 0;

// Workers failed and no restart was left, or the job could not run. As torchrun.
inline constexpr int kFailure = 1;

// The command line is wrong.
inline constexpr int kUsageError = 2;

// An expectation of a fault plan failed.
inline constexpr int kExpectationsFailed = 3;

// This node is unusable: SIGKILL did not end a process on it. EX_UNAVAILABLE of sysexits.h.
inline constexpr int kNodeUnusable = 69;

// Stopped on request; the same command continues where this run stopped. A worker exits with this
// code after it has committed the snapshot for a stop request; cpprun then exits with it too.
// EX_TEMPFAIL of sysexits.h: schedulers know it as "try again".
inline constexpr int kStoppedResumable = 75;

// Stopped because a retry cannot help: do not requeue. EX_CONFIG of sysexits.h.
inline constexpr int kRetryUseless = 78;

// Killed by signal n: 128 + n, as shells show it. No other code is above 128.
inline constexpr int kSignalBase = 128;

}  // namespace cpprun
