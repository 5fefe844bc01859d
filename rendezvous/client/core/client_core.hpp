// ClientCore: what an agent's line to its coordinator decides. When to dial (again), who on the
// other side is no coordinator, where a frame ends, and what people hear of trouble. It knows
// nothing of what the messages mean.
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

#include "common/limits/rendezvous.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control.hpp"

namespace cpprun {

class ClientCore {
 public:
  struct Options {
    std::string endpoint;  // "host:port", for people
    bool is_own = false;   // a coordinator in our own process: nobody waits for it to say welcome
    Duration say_waiting = limits::kSayWaiting;  // trouble is said this often
  };

  // Effects, to be carried out front to back.
  struct Dial {};    // one attempt; on_connected() or on_dial_failed() follows
  struct HangUp {};  // reset the connection: FIN would be taken for a farewell (R4)
  struct Broken {};  // tell the owner that its connection has ended
  struct Probe {};   // ask whoever listens whether it is torch's store; on_probed() follows
  struct Trouble {   // a line for people
    std::string text;
  };
  using Effect = std::variant<Dial, HangUp, Broken, Probe, Trouble>;
  using Effects = std::vector<Effect>;

  explicit ClientCore(Options options) : options_(std::move(options)) {}

  // Once, before everything else.
  void start(Effects& effects) const;
  void on_connected(Instant now);
  // `why` names each address that was tried, and what came of it.
  void on_dial_failed(Instant now, const std::string& why, Effects& effects);
  void on_bytes(std::span<const uint8_t> bytes);
  // The next whole message of what was received. Call until there is none; stop when the
  // connection has ended meanwhile. Nonsense ends the connection.
  std::optional<control::CoordinatorMessage> next_message(Instant now, Effects& effects);
  // The connection ended, or is to be given up for another.
  void on_broken(Instant now, Effects& effects);
  void on_probed(Instant now, bool is_torch_store, Effects& effects);
  // Nothing is tried any more.
  void close();

  void on_time(Instant now, Effects& effects);
  Instant next_deadline() const { return deadline_; }

  bool is_connected() const { return is_connected_; }
  // Why the newest try failed; "" since the last message.
  const std::string& trouble() const { return newest_trouble_; }

 private:
  void retry(Instant now);
  void say_stranger(Instant now, Effects& effects);
  void say_trouble(Instant now, const std::string& why, Effects& effects);

  const Options options_;
  bool is_connected_ = false;
  bool is_welcomed_ = false;  // something whole was received on this connection
  bool has_said_nonsense_ = false;
  bool is_probing_ = false;
  bool is_closed_ = false;
  Instant connected_at_;
  Instant deadline_ = Instant::never();  // of the back-off, or of the wait for the first answer
  Duration back_off_ = limits::kReconnectFirst;
  std::vector<uint8_t> input_;
  size_t taken_ = 0;  // bytes at its front that were given out

  std::string stranger_;  // how whoever listens behaved, while it is probed
  std::string newest_trouble_;
  std::optional<Instant> trouble_since_;
  std::optional<Instant> said_at_;
};

}  // namespace cpprun
