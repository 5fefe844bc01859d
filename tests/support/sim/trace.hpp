// Trace: a run's events, always as a hash, and as text lines if a sink is set.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::sim {

class Trace {
 public:
  // Summary: without messages that only keep a job running.
  enum class Detail { None, Summary, All };

  void fold(uint64_t value) {
    hash_ = (hash_ ^ value) * 0x100000001B3U;
    hash_ ^= hash_ >> 29;
  }
  void fold(std::span<const uint8_t> bytes);
  uint64_t hash() const { return hash_; }

  void listen(Detail detail, std::function<void(const std::string&)> sink) {
    detail_ = detail;
    sink_ = std::move(sink);
  }
  bool is_on() const { return detail_ != Detail::None; }

  // "   1.2500 n3   text".
  void line(Instant now, const std::string& actor, const std::string& what) const;
  void message(Instant now, const std::string& actor, const control::AgentMessage& m) const;
  void message(Instant now, const std::string& actor, const control::CoordinatorMessage& m) const;

 private:
  template <class Message>
  void write(Instant now, const std::string& actor, const char* arrow,
             const Message& message) const;

  uint64_t hash_ = 0xCBF29CE484222325U;
  Detail detail_ = Detail::None;
  std::function<void(const std::string&)> sink_;
};

// A message as one line of text.
std::string describe(const control::AgentMessage& message);
std::string describe(const control::CoordinatorMessage& message);

}  // namespace cpprun::sim
