// One TCPStore connection of the load generator: blocking, with a deadline.
//
// Does not parse replies, only waits for them. An error ends the program, because the measurement
// is useless then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cpprun::bench {

// Prints "compare_load: WHAT: the system's reason" and ends the program.
[[noreturn]] void die(const char* what);

class Connection {
 public:
  // Connects to 127.0.0.1 and sends VALIDATE, which has no reply.
  explicit Connection(uint16_t port);
  Connection(Connection&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  ~Connection();

  int fd() const { return fd_; }
  void send(std::string_view bytes) const;
  // Receives and drops `bytes` bytes; waits at most 30 s for each piece.
  void skip(size_t bytes) const;
  // Receives one byte.
  char take_byte() const;
  // Receives and drops what has arrived; returns its size, 0 if nothing has.
  size_t take() const;

 private:
  int fd_;
};

}  // namespace cpprun::bench
