// A store server that behaves badly: greets a client as a store would, or not even that, reads one
// request, answers with whatever it was given, and then hangs up or falls silent.
//
// Serves one connection after the other on a thread of its own, until it goes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace cpprun {

struct HostileScript {
  std::string greeting = std::string(8, '\0');  // to VALIDATE and GETNUMKEYS: no keys
  std::string answer{};                         // to the request after that
  bool hangs_up = false;                        // else it says nothing more
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
