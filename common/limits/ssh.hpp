// Limits of --hosts and --hostfile: the list of hosts, ssh connections, and what they carry.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

// The list. Each host costs the launcher an ssh process and four descriptors.
inline constexpr size_t kSshHosts = 1'024;
inline constexpr size_t kHostfileBytes = 1 << 20;  // 1,024 lines of 1 KiB

// Connections. More handshakes at a time would overload the machine on which the launcher runs.
inline constexpr int kSshStartsAtOnce = 64;
inline constexpr int kSshConnectSeconds = 10;  // ssh's ConnectTimeout
// ssh gives up a connection whose peer is silent for the product: a host without power.
inline constexpr int kSshAliveSeconds = 15;
inline constexpr int kSshAliveCount = 4;
// From the start of ssh until cpprun runs on the host: slow logins and file servers.
inline constexpr Duration kSshStartTimeout = 120s;
inline constexpr Duration kSshConfigTimeout = 10s;      // ssh -G, which only reads files
inline constexpr size_t kSshConfigBytes = 64 * 1024;    // its output
inline constexpr size_t kRemoteCommandBytes = 120'000;  // Linux: 128 KiB per argument

// The tree of connections. With 32 per host two levels hold more than kSshHosts.
inline constexpr size_t kSshTreeFanout = 32;
inline constexpr size_t kRelayFrameBytes = 1 << 20;    // the longest: the words of an ssh command
inline constexpr size_t kRelayInputBytes = 64 * 1024;  // bytes of a process's stdin in one frame
// Headers of the hosts behind a connection, of which most are a few hundred bytes.
inline constexpr size_t kRelayUnsentBytes = 128 << 20;

// A host that a job continues or starts without: the launcher tries it again after so long, and the
// time doubles at each further attempt up to the longest. A machine needs some minutes to boot; a
// day is covered.
inline constexpr Duration kSshReturnFirst = 5s;
inline constexpr Duration kSshReturnMax = 300s;
inline constexpr int kSshReturns = 300;

// An agent takes a signal within microseconds, on a busy machine within some hundred milliseconds.
inline constexpr Duration kSignalTakenTimeout = 5s;
inline constexpr Duration kSignalTakenPoll = 10ms;

// What the launcher sends to an agent before the job begins: secret and variables.
inline constexpr size_t kControlHeaderBytes = 1 << 20;
inline constexpr size_t kControlLineBytes = 512 * 1024;  // hexadecimal: a variable of 256 KiB

// Text on stdout before cpprun runs on the host; a login shell prints a few lines.
inline constexpr size_t kLoginTextBytes = 16 * 1024;
inline constexpr size_t kLoginTextShown = 200;
// The end of what ssh writes to stderr, by which a failure is explained.
inline constexpr size_t kSshErrorBytes = 8 * 1024;

// Output of all hosts that waits for the launcher's reader; then the hosts wait.
inline constexpr size_t kMergedOutputBytes = 256 * 1024;
// After a request to stop a reader that takes nothing keeps the agents from their end no longer.
inline constexpr Duration kMergedOutputStop = 5s;
// A state of a progress bar, which a carriage return ends, is shown after this.
inline constexpr Duration kMergedProgressBar = 1s;
// Any other unfinished line is shown after this: a prompt, or dots. Not earlier, because a lost
// packet or a busy host delays the rest of a line for seconds, and the line would be cut.
inline constexpr Duration kMergedPartialLine = 5s;

// The end. An agent of a job ends because its job does, so the others follow within seconds.
inline constexpr Duration kOtherAgentsTimeout = 30s;
// After a second signal, or of agents that have not begun.
inline constexpr Duration kSshUrgentTimeout = 15s;
// A process that SIGKILL has not ended by then waits inside the kernel, maybe for ever.
inline constexpr Duration kSshKilledTimeout = 5s;

}  // namespace cpprun::limits
