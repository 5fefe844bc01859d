// LeaderAnnouncer: announces at a job's endpoint, as long as it lives, that this process leads the
// job (R17). Thread: the loop's; it is destroyed there, just before the loop ends. Owner: the
// process that leads the job.
#pragma once

#include <memory>

#include "common/endpoint.hpp"
#include "rendezvous/client/control_client.hpp"
#include "rendezvous/client/core/leader_announcer_core.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class Timer;

class LeaderAnnouncer {
 public:
  // Starts at once.
  LeaderAnnouncer(boost::asio::io_context& loop, const Endpoint& endpoint, control::Hello hello,
                  control::AnnounceLeader acting, std::shared_ptr<const JobTls> tls = nullptr);
  ~LeaderAnnouncer();
  LeaderAnnouncer(const LeaderAnnouncer&) = delete;

 private:
  ControlClient::Events events();
  void on_time();

  const control::Hello hello_;
  const control::AnnounceLeader acting_;
  LeaderAnnouncerCore core_;
  ControlClient client_;
  std::unique_ptr<Timer> timer_;
};

}  // namespace cpprun
