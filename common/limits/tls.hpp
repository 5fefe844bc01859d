// Limits of TLS connections and of the job's secret.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

// An attacker that records a handshake can try secrets offline, so a short one does not protect.
inline constexpr size_t kSecretBytesMin = 16;
inline constexpr size_t kSecretBytesMax = 1024;  // 32 random bytes suffice
// How long the other nodes of a Slurm step wait for the first node's secret file, and how often
// they look: attributes of a shared file system may be a minute old.
inline constexpr Duration kSecretFileWait = 120s;
inline constexpr Duration kSecretFilePoll = 100ms;
// What a peer may send until the handshake is over. A chain of certificates is below 16 KiB.
inline constexpr size_t kTlsHandshakeBytes = 64 * 1024;
inline constexpr Duration kTlsHandshakeTimeout = 10s;  // as kSilentPeerTimeout of the server
// Handshakes of a server at a time: each holds some 60 KiB. 1,000 agents that start at one moment
// fit in; an agent that is turned away comes again.
inline constexpr size_t kTlsHandshakesAtOnce = 2'000;
inline constexpr size_t kTlsRecordBytes = 16 * 1024;  // the largest plaintext of a record
// Encrypted bytes that wait for the socket; more is encrypted when the peer has read.
inline constexpr size_t kTlsUnsentBytes = 64 * 1024;

}  // namespace cpprun::limits
