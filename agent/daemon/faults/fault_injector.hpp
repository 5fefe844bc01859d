// FaultInjector: an agent's part in its job's fault plan. Strikes what waits for a time, answers
// workers that ask whether a fault may be injected where they are, does to them and to itself what
// it must, and keeps the account.
//
// Whether a fault may still be injected the coordinator says: it counts for all nodes. Made only
// where there is a plan. Thread: the loop's. Owner: the daemon.
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "agent/process/timer.hpp"
#include "common/faults/fault_report.hpp"
#include "common/faults/schedule.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/worker/worker_channel.hpp"

namespace cpprun {

class FaultInjector {
 public:
  struct Callbacks {
    std::function<void(const control::FaultPermitRequest&)> request_permit;
    std::function<std::optional<int>(int local_rank)> pid_of;  // of a live worker
    std::function<std::optional<int64_t>(int local_rank)> step_of;
    std::function<void()> drop_connection;  // reset the connection to the coordinator
  };

  // Requires: `config.plan`, drawn.
  FaultInjector(boost::asio::io_context& loop, const FaultConfig& config, Callbacks callbacks);

  // The line to the coordinator; on_connected() after the agent has registered on it.
  void on_connected();
  void on_disconnected();
  void on_fault_permit(const control::FaultPermit& permit);

  // All workers of a round run on this node; none do.
  void on_started(const control::RankAssignment& assignment, int workers);
  void on_stopped();
  // A worker asks; `answer` is called once, unless the agent ends first.
  void on_permit_requested(int local_rank, const channel::FaultPermitRequest& permit_request,
                           std::function<void(bool)> answer);
  void on_began(const channel::Began& began);

  // The job has ended with this code: prints the account and writes what was asked for. Returns the
  // code to end with: kExpectationsFailed if what the plan expects has not held.
  int finish(int exit_code);

 private:
  struct PermitRequest {
    size_t fault = 0;
    std::optional<int> local_rank;  // the worker it hits; nothing: this agent
    int64_t round = 0;
    faults::Progress progress{};
    std::function<void(bool)> answer;  // of a worker that waits; empty: nobody does
  };
  // What ends some time after it began.
  struct ActiveFault {
    Instant until;
    int pid = 0;
    faults::FaultKind what = faults::FaultKind::Stop;
    uint64_t file_bytes = 0;  // the limit that comes back
  };

  void ask(PermitRequest permit_request);
  control::FaultPermitRequest request_of(const PermitRequest& permit_request) const;
  void carry_out(const PermitRequest& permit_request);
  void inject_into_worker(const PermitRequest& permit_request, int pid);
  void fill_disk(int pid, Duration lasts);
  void end_active_faults(Instant now);
  void arm();
  void on_time();
  std::string where(const PermitRequest& permit_request) const;
  std::string final_hash() const;
  bool write(const std::string& path, const std::string& text) const;

  const FaultConfig config_;
  Callbacks callbacks_;
  faults::Schedule schedule_;
  faults::FaultReport report_;
  Timer timer_;
  Instant began_at_;
  std::optional<faults::Placement> here_;  // of the newest round
  bool is_running_ = false;
  bool is_connected_ = false;
  std::deque<PermitRequest> permit_requests_;  // asked, not answered, in their order
  std::vector<ActiveFault> active_faults_;
};

}  // namespace cpprun
