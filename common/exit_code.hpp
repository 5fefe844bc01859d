// Exit codes with a meaning of their own between cpprun, its workers and whoever started it.
#pragma once

namespace cpprun {

// Stopped on request, and everything needed to go on is saved: the same command typed again
// continues. A worker ends so after it has committed the snapshot that a stop request asked for;
// cpprun itself then does too. EX_TEMPFAIL of sysexits.h: schedulers know it as "try again".
inline constexpr int kStoppedResumable = 75;

// What a fault plan expects has not held. cpprun alone ends so.
inline constexpr int kExpectationsFailed = 3;

}  // namespace cpprun
