// ProgressConsole: what a terminal shows of a job before its workers run: a start line, and a line
// that counts while the agent waits for other nodes; and, while workers take long to end after a
// signal, for how long they may. A console that is no terminal shows none of it; there the agent
// logs the coordinator's reminders.
//
// Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <string>

#include "agent/core/config.hpp"
#include "agent/core/effects.hpp"
#include "common/endpoint.hpp"
#include "common/loop/timer.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class ProgressConsole {
 public:
  // `config` outlives this.
  ProgressConsole(boost::asio::io_context& loop, const AgentConfig& config, std::string host_name);
  ~ProgressConsole();

  // `coordinator`: port 0 if it is not known yet. Begins to wait.
  void start(const Endpoint& coordinator, const std::string& log_folder);
  void on_message(const control::CoordinatorMessage& message);
  void stop();  // the wait has ended
  void on_signal();
  void on_end();
  // Whether the event is a reminder of the wait that the terminal shows.
  bool has_shown(const agent::LogEvent& event) const;

 private:
  void wait(const std::string& what);
  void show();
  std::string start_text(const Endpoint& coordinator, const std::string& log_folder) const;
  std::string command_text() const;

  const AgentConfig& config_;
  const std::string host_name_;
  const bool is_live_;
  Endpoint coordinator_;
  std::string what_;                  // that is waited for
  Instant since_ = Instant::never();  // never: nothing is waited for
  bool has_shown_command_ = false;
  bool has_signal_ = false;
  Timer timer_;
  Timer stop_timer_;
};

}  // namespace cpprun
