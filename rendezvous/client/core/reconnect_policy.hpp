// ReconnectPolicy: the decisions of an agent's connection to its coordinator: when to connect,
// which peer is no coordinator, where a frame ends, and when to log trouble. It does not interpret
// messages. The job may have moved to another coordinator, so there are several endpoints: it tries
// the last good one first, then the others in turn. Pure. ControlClient carries out the effects
// over a socket, the simulator over its network. One connection at a time; the caller passes only
// events of the current one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/endpoint.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class ReconnectPolicy {
 public:
  struct Options {
    Endpoint endpoint;    // the job's; unused if is_led_by_election
    bool is_own = false;  // coordinator in this process: no timeout for its first message
    Duration wait_reminder_interval = limits::kWaitReminderInterval;  // interval of Trouble
    Duration back_off_max = limits::kReconnectMax;  // longest pause between attempts
    // Connect only to the endpoint that set_routes() names, which the election determines (R18).
    bool is_led_by_election = false;
    std::vector<uint16_t> further_ports{};  // of the job's endpoint, which are tried in turn
  };

  // Effects, carried out in order.
  struct Connect {};  // one attempt at target(); on_connected() or on_connect_failed() follows
  struct ResetConnection {};  // not FIN, which the coordinator takes for a deliberate leave (R4)
  struct Broken {};           // notify the owner that its connection has ended
  struct Probe {              // check whether torch's store listens there; on_probed() follows
    Endpoint place;
  };
  struct Refused {  // notify the owner that no process listens at these endpoints (R4)
    std::vector<Endpoint> places;
  };
  struct Trouble {  // a log line
    std::string text;
  };
  using Effect = std::variant<Connect, ResetConnection, Broken, Probe, Refused, Trouble>;
  using Effects = std::vector<Effect>;

  explicit ReconnectPolicy(Options options)
      : options_(std::move(options)), is_own_(options_.is_own) {
    if (!options_.is_led_by_election) add_job_endpoints();
  }

  // First call, once.
  void start(Effects& effects) const;
  void on_connected(Instant now);
  // `why` lists the addresses tried and their errors; no process listens at those in `refused`.
  void on_connect_failed(Instant now, const std::string& why, const std::vector<Endpoint>& refused,
                         Effects& effects);
  // Further endpoints where the coordinator may be, the likeliest first. `is_sure`: it is at the
  // first one, which is tried next. `is_own`: in this process.
  void set_routes(const std::vector<Endpoint>& others, bool is_sure, bool is_own);
  void on_bytes(std::span<const uint8_t> bytes);
  // Returns the next whole message of the received bytes. Call until it returns none or the
  // connection has ended. Invalid input ends the connection.
  std::optional<control::CoordinatorMessage> next_message(Instant now, Effects& effects);
  // The connection ended, or the caller gives it up for another one, to the same endpoint or, with
  // `tries_elsewhere`, to the next. `why`: what is known of the reason, for people.
  void on_broken(Instant now, Effects& effects, bool tries_elsewhere = false,
                 const std::string& why = "");
  // `owner`: the process that listens there, for people; "": on another machine, or not known.
  void on_probed(Instant now, bool is_torch_store, const std::string& owner, Effects& effects);
  // No further attempts.
  void close();

  void on_time(Instant now, Effects& effects);
  Instant next_deadline() const { return deadline_; }

  bool is_connected() const { return is_connected_; }
  const Endpoint& target() const { return routes_[at_]; }
  // Why the last attempt failed; "" after a message.
  const std::string& trouble() const { return last_trouble_; }

 private:
  void add_job_endpoints();
  void retry(Instant now, bool is_here);
  void try_next_endpoint(Instant now);
  void go_to(const Endpoint& place);
  void report_unexpected_peer(Instant now, const std::string& why, Effects& effects);
  void report_trouble(Instant now, const std::string& why, Effects& effects);

  const Options options_;
  bool is_own_;
  std::vector<Endpoint> routes_;  // without duplicates; empty before an election names one
  size_t at_ = 0;                 // the current one
  size_t tried_ = 0;              // failed ones since the last pause
  bool is_connected_ = false;
  bool is_registered_ = false;  // this connection received a whole message
  bool has_sent_garbage_ = false;
  bool is_probing_ = false;
  bool is_closed_ = false;
  Instant connected_at_;
  Instant deadline_ = Instant::never();  // of the pause, or of the wait for the first message
  Duration back_off_ = limits::kReconnectFirst;
  // The pause after a reply of a coordinator that does not lead.
  Duration unwanted_back_off_ = limits::kReconnectFirst;
  std::vector<uint8_t> input_;
  size_t taken_ = 0;  // consumed bytes at the front of input_

  std::string unexpected_peer_;  // behaviour of the peer that is being probed
  std::string owner_;            // of the endpoint's port, by the last probe
  std::string last_trouble_;
  std::optional<Instant> trouble_since_;
  std::optional<Instant> reported_at_;
};

}  // namespace cpprun
