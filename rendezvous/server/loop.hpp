// The event loop that a server runs on, for those who must not see Asio (launcher, tests).
//
// run() is called by one thread, which is then the server's thread; post() may be called from any.
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
  // Returns when there is nothing left to wait for, or after release() if hold() was called, or
  // after stop().
  void run();
  // Keeps run() going while nothing is there to wait for.
  void hold();
  void release();
  // run() returns at once, whatever is still waited for.
  void stop();
  // Runs `f` on the loop's thread, soon. Thread-safe.
  void post(std::function<void()> f);
  // Calls `f` once, for the first of these signals that comes.
  void on_signal(const std::vector<int>& numbers, std::function<void(int)> f);

 private:
  struct Io;
  std::unique_ptr<Io> io_;
};

}  // namespace cpprun
