// The event loop of a server, for callers that do not include Asio (launcher, tests).
// One thread calls run() and is then the server's thread; any thread may call post().
#pragma once

#include <functional>
#include <memory>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace cpprun {

class ServerLoop {
 public:
  ServerLoop();
  ~ServerLoop();
  ServerLoop(const ServerLoop&) = delete;
  ServerLoop& operator=(const ServerLoop&) = delete;

  boost::asio::io_context& context();
  // Returns when no work is pending (after hold(): not before release()), or after stop().
  void run();
  // Keeps run() from returning while no work is pending.
  void hold();
  void release();
  // run() returns at once, even with pending work.
  void stop();
  // Runs `f` on the loop's thread, soon. Thread-safe.
  void post(std::function<void()> f);
  // Calls `f` once, for the first of these signals.
  void on_signal(const std::vector<int>& numbers, std::function<void(int)> f);

 private:
  struct Io;
  std::unique_ptr<Io> io_;
};

}  // namespace cpprun
