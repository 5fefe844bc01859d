// Effects: what the coordinator's cores ask their runner to do. Plain data; the server carries the
// effects out, and so does the simulator.
//
// Ordering contract: the runner carries effects out front to back. A `Close` comes after everything
// that is sent to that session; a `ServeStore` comes before every `RankAssignment` with its port.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/ids.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/control/election_values.hpp"

namespace cpprun {

struct Send {
  SessionId session;
  control::CoordinatorMessage message;
};

// End a connection after everything that was sent on it: by FIN, or by reset where the agent would
// take a FIN as evidence that the coordinator is dead.
struct Close {
  SessionId session;
  bool is_reset = false;
};

// Open a listening port for the next round's store; the answer is Coordinator::on_store_port().
struct WantStorePort {
  std::string run_id;
};

// Serve a fresh, empty store of this round at `port` (0: at the main port). Close the store and the
// port of the round before.
struct ServeStore {
  std::string run_id;
  RoundNumber round;
  int64_t port = 0;
};

// Under a leader lease only (R18): the runner carries out no later effect, of this call or of later
// calls, before this state is persisted in etcd.
struct PersistState {
  control::PersistedJobState facts;
};

// The job is over: close its store and its spare port.
struct DropStores {
  std::string run_id;
};

// A log line as data. Tests compare `event`, the runner prints the text.
struct LogEvent {
  enum class Level { Debug, Info, Warning } level = Level::Info;
  std::string event;
  std::string text;
};

using Effect =
    std::variant<Send, Close, WantStorePort, ServeStore, DropStores, LogEvent, PersistState>;
using Effects = std::vector<Effect>;

inline void log_info(Effects& effects, std::string event, std::string text) {
  effects.push_back(LogEvent{LogEvent::Level::Info, std::move(event), std::move(text)});
}

inline void log_warning(Effects& effects, std::string event, std::string text) {
  effects.push_back(LogEvent{LogEvent::Level::Warning, std::move(event), std::move(text)});
}

// Sends an agent the reason for which the coordinator refuses it, and closes its connection.
inline void refuse(Effects& effects, SessionId session, control::Refused refusal) {
  effects.push_back(Send{session, std::move(refusal)});
  effects.emplace_back(Close{session, false});
}

}  // namespace cpprun
