// LeaderAnnouncer: says at a job's endpoint, as long as it lives, that the job is led from
// elsewhere (R17).
//
// Thread: the loop's, where it must also die, just before the loop ends. Owner: who leads the job.
#pragma once

#include <memory>

#include "common/endpoint.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace boost::asio {
class io_context;
}

namespace cpprun {

class LeaderAnnouncer {
 public:
  // Starts at once.
  LeaderAnnouncer(boost::asio::io_context& loop, const Endpoint& endpoint, control::Hello hello,
                  control::AnnounceLeader acting);
  ~LeaderAnnouncer();
  LeaderAnnouncer(const LeaderAnnouncer&) = delete;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun
