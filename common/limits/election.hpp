// Limits: the election of a coordinator through etcd (docs/protocol.md, R18).
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr Duration kLeaderPollInterval =
    200ms;  // an agent that nobody leads asks etcd this often who does
inline constexpr Duration kElectionBackOff =
    1s;  // after a plain no of etcd: it will not change soon
inline constexpr Duration kEtcdResponseTimeout =
    1s;  // an answer that takes longer is asked for elsewhere
inline constexpr Duration kLeaseRenewInterval =
    250ms;  // a leader renews its lease, or each 1/20 of a lease
inline constexpr Duration kPingIntervalMin = 20ms;  // an agent whose worker lease is short asks for
                                                    // more, not sooner than that after an answer
inline constexpr Duration kHostLossDelay = 500ms;   // members come back to a new coordinator; the
                                                    // former one's node is not waited for longer
inline constexpr Duration kLeaderLeaveTimeout =
    2s;  // a leader that was asked to stop waits so long for the others' workers to end, so that it
         // can give its lease back
inline constexpr size_t kElectionValueBytes =
    256 * 1024;  // of a key; what we write is below 40 KiB, most of it a failure summary

}  // namespace cpprun::limits
