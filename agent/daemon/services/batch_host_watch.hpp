// BatchHostWatch: after this agent has lost its coordinator, asks Slurm whether the node of the
// batch script is lost, and if so for the requeue of the job (agent/core/lost_batch_host.hpp). The
// commands run on threads of their own. Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "common/loop/background_work.hpp"
#include "common/loop/timer.hpp"
#include "common/time.hpp"

namespace cpprun {

class BatchHostWatch {
 public:
  // `config` must outlive this object.
  BatchHostWatch(boost::asio::io_context& loop, const AgentConfig& config,
                 std::function<void(const std::string&)> warn);

  // A connection to the coordinator has ended. Without --requeue this does nothing.
  void on_disconnected();

 private:
  struct Answer {
    bool is_done = false;  // the command has ended with 0
    std::string text{};    // its output, or why there is none
  };
  static Answer run(const std::vector<std::string>& command);

  void ask();
  void on_shown(const Answer& answer);
  void requeue();
  void on_requeued(const Answer& answer);

  const AgentConfig& config_;
  const std::function<void(const std::string&)> warn_;
  BackgroundWork background_;
  Timer timer_;
  bool is_over_ = false;  // asked for the requeue, or no node may
  bool is_asking_ = false;
  Duration pause_{};                  // before the next question
  Instant until_ = Instant::never();  // never: not watching
};

}  // namespace cpprun
