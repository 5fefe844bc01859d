// ElectionRunner: runs an Election core: sends its requests to etcd, owns its timer and reports its
// decisions. Before the election starts it reads from etcd once. This determines the local address
// by which etcd is reached, and reports a wrong password at once. Thread: the loop's. Events come
// from the loop, never from inside a member function.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/ids.hpp"
#include "common/time.hpp"
#include "rendezvous/client/etcd/etcd_client.hpp"
#include "rendezvous/coordinator/election.hpp"

namespace boost::asio {
class io_context;
}

namespace cpprun::etcd {

struct ElectionRunnerOptions {
  ClientOptions etcd;
  std::string prefix{};        // prefix of all keys: "" or "/..."
  Election::Options election;  // self.address "": the local address of the connection to etcd
};

// As the effects of Election.
struct ElectionRunnerEvents {
  std::function<void(const election::Elected&)> on_elected;
  std::function<void(Instant until)> on_lease_extended;
  std::function<void()> on_persisted;
  std::function<void(const std::string& why)> on_leadership_lost;
  std::function<void(const election::FollowLeader&)> on_follow;
  std::function<void()> on_resigned;
  std::function<void(const std::string& why)> on_trouble;
};

class ElectionRunner {
 public:
  ElectionRunner(boost::asio::io_context& loop, ElectionRunnerOptions options,
                 ElectionRunnerEvents events);
  ~ElectionRunner();  // no event follows
  ElectionRunner(const ElectionRunner&) = delete;

  // As the functions of Election; the calls take effect later, on the loop.
  void start();
  void set_has_leader(bool is_led);
  void set_candidate(bool is_willing);
  void write(const control::PersistedJobState& facts);
  void leave(bool is_idle);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // shared with pending operations
};

}  // namespace cpprun::etcd
