// ReconnectPolicy: what an agent's line to its coordinator decides. When to dial (again), who on
// the other side is no coordinator, where a frame ends, and what people hear of trouble. It knows
// nothing of what the messages mean. A job may have moved, so there are several places to look for
// its coordinator: where it was is tried first, then the others in turn.
//
// A core: no I/O, no clock. ControlClient carries its effects out over a socket, the simulator over
// its own network. One connection at a time; the caller tells which events belong to it.
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
    Endpoint endpoint;    // the job's; none where an election says where the coordinator is
    bool is_own = false;  // a coordinator in our own process: nobody waits for it to say welcome
    Duration wait_reminder_interval = limits::kWaitReminderInterval;  // trouble is said this often
    Duration back_off_max = limits::kReconnectMax;  // the longest pause between two tries
    // Nothing is dialled before set_routes() has named a place, and nothing but that (R18).
    bool is_led_by_election = false;
  };

  // Effects, to be carried out front to back.
  struct Connect {};  // one attempt at target(); on_connected() or on_connect_failed() follows
  struct ResetConnection {};  // reset the connection: FIN would be taken for a farewell (R4)
  struct Broken {};           // tell the owner that its connection has ended
  struct Probe {};  // ask whoever listens whether it is torch's store; on_probed() follows
  struct Refused {  // tell the owner where nobody listens (R4)
    std::vector<Endpoint> places;
  };
  struct Trouble {  // a line for people
    std::string text;
  };
  using Effect = std::variant<Connect, ResetConnection, Broken, Probe, Refused, Trouble>;
  using Effects = std::vector<Effect>;

  explicit ReconnectPolicy(Options options)
      : options_(std::move(options)), is_own_(options_.is_own) {
    if (!options_.is_led_by_election) routes_.push_back(options_.endpoint);
  }

  // Once, before everything else.
  void start(Effects& effects) const;
  void on_connected(Instant now);
  // `why` names each address that was tried, and what came of it; `refused` are those where the
  // kernel said that nobody listens.
  void on_connect_failed(Instant now, const std::string& why, const std::vector<Endpoint>& refused,
                         Effects& effects);
  // Further places where the coordinator may be, the likeliest first. `is_sure`: it is at the first
  // one, which is dialled next; `is_own`, in our own process.
  void set_routes(const std::vector<Endpoint>& others, bool is_sure, bool is_own);
  void on_bytes(std::span<const uint8_t> bytes);
  // The next whole message of what was received. Call until there is none; stop when the
  // connection has ended meanwhile. Nonsense ends the connection.
  std::optional<control::CoordinatorMessage> next_message(Instant now, Effects& effects);
  // The connection ended, or is to be given up for another: to the same place, or elsewhere.
  void on_broken(Instant now, Effects& effects, bool tries_elsewhere = false);
  void on_probed(Instant now, bool is_torch_store, Effects& effects);
  // Nothing is tried any more.
  void close();

  void on_time(Instant now, Effects& effects);
  Instant next_deadline() const { return deadline_; }

  bool is_connected() const { return is_connected_; }
  const Endpoint& target() const { return routes_[at_]; }
  // Why the newest try failed; "" since the last message.
  const std::string& trouble() const { return last_trouble_; }

 private:
  void retry(Instant now, bool is_here);
  void try_next_endpoint(Instant now);
  void go_to(const Endpoint& place);
  void report_unexpected_peer(Instant now, Effects& effects);
  void report_trouble(Instant now, const std::string& why, Effects& effects);

  const Options options_;
  bool is_own_;
  std::vector<Endpoint> routes_;  // each once; none before an election has said one
  size_t at_ = 0;                 // which of them is tried, or was
  size_t tried_ = 0;              // of them, since the last back-off
  bool is_connected_ = false;
  bool is_registered_ = false;  // something whole was received on this connection
  bool has_sent_garbage_ = false;
  bool is_probing_ = false;
  bool is_closed_ = false;
  Instant connected_at_;
  Instant deadline_ = Instant::never();  // of the back-off, or of the wait for the first answer
  Duration back_off_ = limits::kReconnectFirst;
  // The same after an answer of who does not lead.
  Duration unwanted_back_off_ = limits::kReconnectFirst;
  std::vector<uint8_t> input_;
  size_t taken_ = 0;  // bytes at its front that were given out

  std::string unexpected_peer_;  // how whoever listens behaved, while it is probed
  std::string last_trouble_;
  std::optional<Instant> trouble_since_;
  std::optional<Instant> reported_at_;
};

}  // namespace cpprun
