// A server on its own thread, and blocking clients for it. Every wait has a deadline.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/server/server.hpp"

namespace cpprun {

inline constexpr std::chrono::seconds kDeadline{100};

class RunningServer {
 public:
  // Listens on 127.0.0.1. Default hooks serve one store and a status of {"a": 1}.
  explicit RunningServer(ServerOptions options = {}, ServerHooks hooks = {});
  ~RunningServer();
  uint16_t port() const { return port_; }

  // Runs `f(Server&)` on the server's thread and returns its result.
  template <class F>
  auto call(F f) {
    std::optional<decltype(f(std::declval<Server&>()))> result;
    run_there([&](Server& server) { result.emplace(f(server)); });
    return std::move(*result);
  }

 private:
  struct Inner;
  void run_there(const std::function<void(Server&)>& f);

  std::unique_ptr<Inner> inner_;
  uint16_t port_ = 0;
};

class Client {
 public:
  struct MayFail {};
  Client() = default;  // prepare(), connect()
  explicit Client(uint16_t port);
  Client(uint16_t port, MayFail);
  Client(Client&& other) noexcept;
  Client& operator=(Client&&) = delete;
  ~Client();

  void prepare();
  bool connect(uint16_t port);
  void send(std::string_view bytes) const;
  // Exactly `size` bytes, or fewer if the connection ends or the deadline passes.
  std::string read(size_t size) const;
  // True if the server ends the connection before the deadline; ignores earlier data.
  bool is_ended() const;
  bool has_ended_by_now() const;
  void finish() const;  // FIN
  void reset();         // RST

 private:
  int fd_ = -1;
};

// Everything that the server sends until it ends the connection.
std::string http(uint16_t port, std::string_view request);

bool eventually(const std::function<bool()>& condition);

long resident_kib();

struct SocketFacts {
  bool is_close_on_exec;
  bool is_no_delay;
  bool detects_dead_peer;
};
// The sockets of this process whose local port is `port`.
std::vector<SocketFacts> sockets_of_port(uint16_t port);
// Those that are connected to it.
std::vector<SocketFacts> sockets_to_port(uint16_t port);
int highest_descriptor();
// Opens descriptors until the limit.
std::vector<int> fill_descriptors();

}  // namespace cpprun
