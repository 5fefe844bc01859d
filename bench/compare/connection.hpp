// A client's end of one TCPStore connection, for the load generator: blocking, with a deadline.
//
// Not a store client: replies are not understood, only waited for. An error ends the program with a
// text, for nobody goes on measuring after one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cpprun::bench {

// Ends the program: "compare_load: WHAT: the system's reason".
[[noreturn]] void die(const char* what);

class Connection {
 public:
  // Connects to 127.0.0.1 and says VALIDATE; what the server makes of it is not waited for.
  explicit Connection(uint16_t port);
  Connection(Connection&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  ~Connection();

  int fd() const { return fd_; }
  void send(std::string_view bytes) const;
  // Waits for so many bytes, at most 30 s for each piece.
  void skip(size_t bytes) const;
  // Waits for one byte.
  char take_byte() const;
  // Takes what has arrived; 0 if nothing has.
  size_t take() const;

 private:
  int fd_;
};

}  // namespace cpprun::bench
