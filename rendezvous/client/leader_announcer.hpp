// LeaderAnnouncer: announces at a job's endpoint, as long as it lives, that this process leads the
// job (R17). Thread: the loop's; it is destroyed there, just before the loop ends. Owner: the
// process that leads the job.
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
