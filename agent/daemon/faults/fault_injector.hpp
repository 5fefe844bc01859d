// FaultInjector: an agent's part in its job's fault plan. It injects faults that are due at a time,
// answers workers that ask for permission to inject a fault at their position, and keeps the fault
// report.
//
// The coordinator grants the permits, because it counts the injections of all nodes. Exists only
// with a fault plan. Thread: the loop's. Owner: the daemon.
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "common/faults/fault_report.hpp"
#include "common/faults/schedule.hpp"
#include "common/loop/timer.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/worker/worker_channel.hpp"

namespace cpprun {

class FaultInjector {
 public:
  struct Callbacks {
    std::function<void(const control::FaultPermitRequest&)> request_permit;
    std::function<std::optional<int>(int local_rank)> pid_of;  // nullopt unless it is alive
    std::function<std::optional<int64_t>(int local_rank)> step_of;
    std::function<void()> drop_connection;  // reset the connection to the coordinator
  };

  // Requires: `config.plan` comes from faults::drawn().
  FaultInjector(boost::asio::io_context& loop, const FaultConfig& config, Callbacks callbacks);

  // The connection to the coordinator. on_connected(): after the agent has sent its registration.
  void on_connected();
  void on_disconnected();
  // Every message of the coordinator.
  void on_message(const control::CoordinatorMessage& message);

  // All workers of a round run on this node; no worker does.
  void on_started(const control::RankAssignment& assignment, int workers);
  void on_stopped();
  // A worker asks for a permit; `answer` is called once, unless the agent ends first. A worker that
  // asks while others of its round are being started waits until on_started().
  void on_permit_requested(int local_rank, const channel::FaultPermitRequest& permit_request,
                           std::function<void(bool)> answer);
  void on_began(const channel::Began& began);

  // After the end of the job with `exit_code`: prints the fault report and writes the report files.
  // Returns the exit code for cpprun: kExpectationsFailed if an expectation of the plan failed.
  int finish(int exit_code);

 private:
  struct PermitRequest {
    size_t fault = 0;
    std::optional<int> local_rank;  // the target worker; nullopt: this agent
    int64_t round = 0;
    faults::Progress progress{};
    std::function<void(bool)> answer;  // empty if no worker waits for it
  };
  // A worker's request that came before on_started().
  struct EarlyRequest {
    int local_rank = 0;
    channel::FaultPermitRequest request{};
    std::function<void(bool)> answer;
  };
  // A fault with a duration.
  struct ActiveFault {
    Instant until;
    int pid = 0;
    faults::FaultKind what = faults::FaultKind::Stop;
    uint64_t file_bytes = 0;  // the former RLIMIT_FSIZE, to restore
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
  std::deque<PermitRequest> permit_requests_;  // unanswered, in order
  std::vector<EarlyRequest> early_requests_;
  std::vector<ActiveFault> active_faults_;
};

}  // namespace cpprun
