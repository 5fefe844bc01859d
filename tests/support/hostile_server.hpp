// A hostile store server: handshakes as a store would, or not at all, reads one request, sends a
// given answer, and then disconnects or stays silent.
//
// Serves one connection after the other on its own thread, until its end.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace cpprun {

struct HostileScript {
  std::string greeting = std::string(8, '\0');  // to VALIDATE and GETNUMKEYS: no keys
  std::string answer{};                         // to the request after that
  bool hangs_up = false;                        // otherwise it stays silent
  bool is_trickling = false;                    // `answer` again and again, without an end
};

class HostileServer {
 public:
  explicit HostileServer(HostileScript script);
  ~HostileServer();
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int clients() const { return clients_; }

 private:
  void serve();
  void serve_one(int fd);

  HostileScript script_;
  int listener_ = -1;
  std::atomic<int> client_{-1};
  std::atomic<int> clients_{0};
  std::atomic<bool> is_over_{false};
  uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace cpprun
