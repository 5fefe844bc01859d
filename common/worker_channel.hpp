// What an agent and a worker say to each other over the socket that CPPRUN_AGENT names: a few
// messages, one datagram each. What changes all the time stands in the page that they share
// (worker_page.hpp).
//
// Pure. A message is [magic, type, body]; anything else is an error (Protocol), and whoever gets
// one ends the connection.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "common/limits.hpp"
#include "common/result.hpp"

namespace cpprun::channel {

inline constexpr uint32_t kVersion = 1;
// Longer datagrams are no message. Whoever receives has room for one byte more, to see it.
inline constexpr size_t kMessageBytes = 8 + limits::kWorkerReportBytes;

// A worker's first words. Which worker it is the agent knows by its session.
struct Hello {
  uint32_t version = kVersion;
};
// The agent's answer; the page's descriptor comes with it.
struct Page {
  uint32_t bytes = 0;
};
// The worker has set itself up. At most once.
struct Ready {};
// Why the worker is about to end. At most limits::kWorkerReportBytes; what is more is cut when it
// is encoded.
struct Report {
  std::string text;
};

using Message = std::variant<Hello, Page, Ready, Report>;

std::string encode(const Message& message);
Result<Message> decode(std::span<const uint8_t> bytes);

}  // namespace cpprun::channel
