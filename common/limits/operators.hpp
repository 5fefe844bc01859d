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

}  // namespace cpprun::limits
