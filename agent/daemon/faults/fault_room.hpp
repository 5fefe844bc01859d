// FaultRoom: an agent's part in its job's fault plan. Strikes what waits for a time, answers
// workers that ask whether a fault may strike where they are, does to them and to itself what it
// must, and keeps the account.
//
// Whether a fault may still strike the coordinator says: it counts for all nodes. Made only where
// there is a plan. Thread: the loop's. Owner: the daemon.
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "agent/process/timer.hpp"
#include "common/faults/account.hpp"
#include "common/faults/schedule.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/worker/worker_channel.hpp"

namespace cpprun {

class FaultRoom {
 public:
  struct Doors {
    std::function<void(const control::Strike&)> ask_coordinator;
    std::function<std::optional<int>(int local_rank)> pid_of;  // of a live worker
    std::function<std::optional<int64_t>(int local_rank)> step_of;
    std::function<void()> drop_line;  // reset the connection to the coordinator
  };

  // Requires: `config.plan`, drawn.
  FaultRoom(boost::asio::io_context& loop, const FaultConfig& config, Doors doors);

  // The line to the coordinator; on_connected() after the agent has registered on it.
  void on_connected();
  void on_disconnected();
  void on_struck(const control::Struck& struck);

  // All workers of a round run on this node; none do.
  void on_started(const control::World& world, int workers);
  void on_stopped();
  // A worker asks; `answer` is called once, unless the agent ends first.
  void on_asked(int local_rank, const channel::Strike& question, std::function<void(bool)> answer);
  void on_began(const channel::Began& began);

  // The job has ended with this code: prints the account and writes what was asked for. Returns the
  // code to end with: kExpectationsFailed if what the plan expects has not held.
  int finish(int exit_code);

 private:
  struct Question {
    size_t fault = 0;
    std::optional<int> local_rank;  // the worker it hits; nothing: this agent
    int64_t round = 0;
    faults::Progress progress{};
    std::function<void(bool)> answer;  // of a worker that waits; empty: nobody does
  };
  // What ends some time after it began.
  struct Lasting {
    Instant until;
    int pid = 0;
    faults::What what = faults::What::Stop;
    uint64_t file_bytes = 0;  // the limit that comes back
  };

  void ask(Question question);
  control::Strike strike_of(const Question& question) const;
  void carry_out(const Question& question);
  void strike_worker(const Question& question, int pid);
  void fill_disk(int pid, Duration lasts);
  void end_lasting(Instant now);
  void arm();
  void on_time();
  std::string where(const Question& question) const;
  std::string final_hash() const;
  bool write(const std::string& path, const std::string& text) const;

  const FaultConfig config_;
  Doors doors_;
  faults::Schedule schedule_;
  faults::Account account_;
  Timer timer_;
  Instant began_at_;
  std::optional<faults::Here> here_;  // of the newest round
  bool is_running_ = false;
  bool is_connected_ = false;
  std::deque<Question> questions_;  // asked, not answered, in their order
  std::vector<Lasting> lasting_;
};

}  // namespace cpprun
