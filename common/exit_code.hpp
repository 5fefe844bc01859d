// The exit codes of cpprun and cpprunctl, all of them. README.md and packaging/man/cpprun.1 show
// the same table; tests/integration/test_exit_codes.py compares the three.
#pragma once

namespace cpprun {

// All workers of all nodes ended with 0; cpprunctl has done what it was asked to do.
inline constexpr int kSuccess = 0;

// Workers failed and no restart was left, or the job could not run. torchrun ends so as well.
inline constexpr int kFailure = 1;

// The command line cannot be read.
inline constexpr int kUsageError = 2;

// What a fault plan expects has not held.
inline constexpr int kExpectationsFailed = 3;

// This node cannot be used: SIGKILL did not end a process on it. EX_UNAVAILABLE of sysexits.h.
inline constexpr int kNodeUnusable = 69;

// Stopped on request, and nothing that was saved or done is lost: the same command typed again
// continues. A worker ends so after it has committed the snapshot that a stop request asked for;
// cpprun itself then does too. EX_TEMPFAIL of sysexits.h: schedulers know it as "try again".
inline constexpr int kStoppedResumable = 75;

// Stopped because a retry cannot help: do not requeue. EX_CONFIG of sysexits.h.
inline constexpr int kRetryUseless = 78;

// Ended by signal n: 128 + n, as shells show it. No other code is above it.
inline constexpr int kSignalBase = 128;

}  // namespace cpprun
