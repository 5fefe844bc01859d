// Limits: operators' tools and the agent's socket for them.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr size_t kOperatorConnections = 32;  // to one agent at a time
inline constexpr size_t kOperatorWords = 32;        // of one question
inline constexpr size_t kOperatorWordBytes = 4 * 1024;
inline constexpr size_t kOperatorAnswerBytes = 4 << 20;  // 4,096 workers of some 500 bytes, twice
inline constexpr Duration kOperatorAsks = 2s;            // who has connected has asked by then
inline constexpr Duration kOperatorAnswers = 60s;        // stacks of a big node take a while

// Orders over TCP.
inline constexpr size_t kOrderTokenBytes = 16;     // shorter ones can be guessed
inline constexpr size_t kOrdersAsked = 64;         // nonces that wait for their proof
inline constexpr size_t kOrdersWrong = 1'024;      // addresses that have just been wrong
inline constexpr Duration kOrderNonceLasts = 10s;  // a tool answers at once
inline constexpr Duration kOrderAfterWrong = 1s;   // until the next try from the same address

}  // namespace cpprun::limits
