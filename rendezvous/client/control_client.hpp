// ControlClient: an agent's line to its coordinator. Resolves, tries all addresses at once, speaks
// frames, connects again when the line breaks. Knows nothing of what the messages mean.
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
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace boost::asio {
class io_context;
}

namespace cpprun {

class ControlClient {
 public:
  struct Events {
    // Connected to `peer` (numeric); our own numeric addresses on the line, the one towards the
    // coordinator first.
    std::function<void(std::vector<std::string>, const Endpoint& peer)> on_connected;
    // Before each try at the job's endpoint: its numeric addresses; none: its name is not known. If
    // a coordinator in our own process serves there from now on: where it is reached. May be called
    // from inside the constructor and set_routes().
    std::function<std::optional<Endpoint>(const std::vector<std::string>& addresses)> on_found;
    // The kernel of these places (numeric) says that nobody listens there.
    std::function<void(const std::vector<Endpoint>&)> on_refused;
    std::function<void(const control::CoordinatorMessage&)> on_message;
    std::function<void()> on_disconnected;  // after on_connected; a new attempt is already planned
    // Worth a line for people, at most once a minute: which addresses were tried, how, since when.
    std::function<void(const std::string&)> on_trouble;
  };

  struct Options {
    bool is_own = false;  // a coordinator in our own process: nobody waits for it to say welcome
    Duration wait_reminder_interval = limits::kWaitReminderInterval;  // trouble is said this often
    Duration back_off_max = limits::kReconnectMax;  // the longest pause between two tries
    bool is_led_by_election = false;                // as ReconnectPolicy::Options has it
  };

  // Starts to connect at once.
  ControlClient(boost::asio::io_context& loop, Endpoint endpoint, Options options, Events events);
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;

  // Dropped when there is no connection.
  void send(const control::AgentMessage& message);

  // Ends it for good after what was sent: FIN, or reset. `on_gone` follows when the bytes are out
  // or can't be.
  void close(bool is_reset, std::function<void()> on_gone);

  // Resets the connection, if there is one, and makes another, to the same place or elsewhere.
  void reconnect(bool is_elsewhere = false);

  // As ReconnectPolicy::set_routes().
  void set_routes(const std::vector<Endpoint>& places, bool is_sure, bool is_own);

  const std::string& trouble() const;  // why the newest try failed; "" since the last welcome
  std::string peer_address() const;    // numeric; "" while not connected

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with its own pending operations
};

}  // namespace cpprun
