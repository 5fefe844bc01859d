// ControlClient: an agent's connection to its coordinator. It resolves the name, tries all
// addresses at once, sends and receives frames, and reconnects when the connection breaks. It does
// not interpret messages.
//
// Thread: the loop's. Owner: the agent's daemon. Callbacks are never called from inside a member
// function.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/endpoint.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "common/tls/job_tls.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace boost::asio {
class io_context;
}

namespace cpprun {

class ControlClient {
 public:
  struct Events {
    // Connected to `peer` (numeric). The first argument is the numeric local address of the
    // connection.
    std::function<void(std::vector<std::string>, const Endpoint& peer)> on_connected;
    // Called before each attempt at the job's endpoint, with its numeric addresses (none: unknown
    // name). Returns the address of the coordinator if this process serves it from now on. May be
    // called from inside the constructor and set_routes().
    std::function<std::optional<Endpoint>(const std::vector<std::string>& addresses)> on_found;
    // As Connector::InProcess; may be empty.
    std::function<UniqueFd(const Endpoint& at)> connect_in_process;
    // No process listens at these numeric endpoints: their kernel refused the connection.
    std::function<void(const std::vector<Endpoint>&)> on_refused;
    std::function<void(const control::CoordinatorMessage&)> on_message;
    std::function<void()> on_disconnected;  // follows on_connected; a new attempt is scheduled
    // A log line about failing attempts, at most once a minute: addresses, errors, duration.
    std::function<void(const std::string&)> on_trouble;
  };

  struct Options {
    bool is_own = false;  // coordinator in this process: no timeout for its first message
    Duration wait_reminder_interval = limits::kWaitReminderInterval;  // interval of on_trouble
    Duration back_off_max = limits::kReconnectMax;  // longest pause between attempts
    bool is_led_by_election = false;                // see ReconnectPolicy::Options
    std::vector<uint16_t> further_ports{};          // see ReconnectPolicy::Options
    // Encrypts each connection; it never falls back to a plain one. Null: plain.
    std::shared_ptr<const JobTls> tls{};
  };

  // Connects at once.
  ControlClient(boost::asio::io_context& loop, Endpoint endpoint, Options options, Events events);
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;

  // Drops the message while disconnected.
  void send(const control::AgentMessage& message);

  // Closes permanently after the sent messages, with FIN or a reset. `on_gone` follows when the
  // bytes are sent or cannot be sent.
  void close(bool is_reset, std::function<void()> on_gone);

  // Resets the connection, if any, and makes another, to the same endpoint or to the next one.
  void reconnect(bool is_elsewhere = false);

  // As ReconnectPolicy::set_routes().
  void set_routes(const std::vector<Endpoint>& places, bool is_sure, bool is_own);

  const std::string& trouble() const;  // why the last attempt failed; "" after a message
  std::string peer_address() const;    // numeric; "" while not connected

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // shared with pending operations
};

}  // namespace cpprun
