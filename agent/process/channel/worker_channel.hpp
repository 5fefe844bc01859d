// WorkerChannel: the agent's end of the line to its workers. A unix socket with a name; who
// connects and is of a live worker's session gets that worker's page and arena, may say that it is
// ready or why it ends, and asks for leave to commit a snapshot. Bytes:
// rendezvous/protocol/worker/worker_channel.hpp, memory:
// rendezvous/protocol/worker/worker_page.hpp, arenas.hpp.
//
// Costs nothing while nobody connects, and wakes nobody afterwards. A peer that is a stranger or
// says what it must not say loses its connection; one that says too much is heard more slowly. So
// what all of them can cost in time is limited. Thread: the loop's.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/process/channel/arenas.hpp"
#include "agent/process/channel/shared_page.hpp"
#include "agent/process/timer.hpp"
#include "common/worker_observation.hpp"
#include "rendezvous/protocol/worker/worker_channel.hpp"

namespace cpprun {

class WorkerChannel {
 public:
  struct Events {
    // The local rank of the live worker that leads this session; nothing if there is none.
    std::function<std::optional<int>(int session)> worker_of;
    std::function<void(int local_rank)> on_ready;  // once per worker and round
    // How far a worker is on its way to its first step. Resumed may come often, the others once per
    // worker and round. Unset: nobody asks.
    std::function<void(int local_rank, WorkerMilestone word)> on_milestone;
    // Why no worker may give a snapshot its final name now; empty: it may.
    std::function<std::string()> commit_refusal;
    // A worker says that it has committed the snapshot of this step. `path` is absolute, and
    // nothing else about it is known. May come often, and more than once for a step.
    std::function<void(int local_rank, int64_t step, const std::string& path)> on_snapshot;
    // A worker says that it could not use the snapshot that its round was to begin with, and went
    // on from that of this step instead; -1: from the beginning. May come often.
    std::function<void(int local_rank, int64_t step)> on_fell_back;
    // A worker asks whether a fault of the plan may be injected; `answer` is called at most once,
    // at any time. Unset: none may.
    std::function<void(int local_rank, const channel::FaultPermitRequest&,
                       std::function<void(bool)> answer)>
        on_fault_permit_request;
    std::function<void(int local_rank, const channel::Began&)> on_began;  // may come often
  };
  // What an ended worker had left here.
  struct FinalReport {
    std::string report;  // empty: none
    std::optional<Heartbeat> heartbeat;
    bool made_no_step = false;  // it is known to say its steps, and has made none in this round
  };

  // `name`: of an abstract unix socket, without its leading zero. Where it can't be had the channel
  // is closed: is_open() says so. `arenas`: not null; shared with whoever else serves them.
  WorkerChannel(boost::asio::io_context& loop, const std::string& name, Events events,
                std::shared_ptr<Arenas> arenas);

  bool is_open() const { return listener_.is_open(); }
  // Forgets all workers but keeps their arenas; requires that they are gone.
  void begin_round(size_t workers);
  void ask_to_stop();  // all workers of the round, those that connect later too
  // This worker saves and then ends when it is asked to stop.
  bool can_save(int local_rank) const;
  // Its newest heartbeat; nothing if it has sent none.
  std::optional<Heartbeat> heartbeat(int local_rank) const;
  // The step of its last heartbeat; nothing: it has sent none.
  std::optional<int64_t> step_of(int local_rank) const;
  // The number of the descriptor, inside the worker, of the file into which it writes its stack on
  // kStackSignal (worker_page.hpp); nothing if it has none. It may be any number.
  std::optional<int> stack_file(int local_rank) const;
  // Reads what the worker has said until now, and ends its connections.
  FinalReport worker_exited(int local_rank);

 private:
  struct Worker {
    std::optional<SharedPage> page;
    std::string report;
    bool is_ready = false;
    bool has_stepped = false;
    size_t connections = 0;
    size_t connected = 0;  // in all, of this round
  };
  struct Peer {
    boost::asio::posix::stream_descriptor socket;
    int local_rank;
    uint64_t id = 0;
    uint32_t version = 0;  // that it said hello with; 0: it has not
    int messages = 0;      // of this turn
    Instant turn_ends{};
  };

  const WorkerPage* page_of(int local_rank) const;
  bool made_no_step(int local_rank) const;
  void watch_listener();
  void accept_some();
  bool accept_one();
  std::optional<int> local_rank_of(int socket) const;
  void watch(uint64_t id);
  void on_readable(uint64_t id);
  bool may_read(Peer& peer);
  void resume_reading();
  bool read_one(Peer& peer);
  void drop(uint64_t id);

  // worker_channel.cpp
  bool take(Peer& peer, const channel::Message& message);
  bool welcome(Peer& peer, const channel::Hello& hello);
  bool on(Peer& peer, const channel::Ready& ready);
  bool on(Peer& peer, const channel::Report& report);
  bool on(Peer& peer, const channel::ArenaRequest& wanted);
  bool on(Peer& peer, const channel::PeerArenaRequest& wanted);
  bool on(Peer& peer, const channel::CommitRequest& request_id);
  bool on(Peer& peer, const channel::Snapshot& snapshot);
  bool on(Peer& peer, const channel::Resumed& resumed);
  bool on(Peer& peer, const channel::FaultPermitRequest& request_id);
  bool on(Peer& peer, const channel::Began& began);
  bool on(Peer& peer, const channel::FirstStep& first);
  // Only an agent says these.
  bool on(Peer&, const channel::Hello&) { return false; }
  bool on(Peer&, const channel::Page&) { return false; }
  bool on(Peer&, const channel::Arena&) { return false; }
  bool on(Peer&, const channel::Permission&) { return false; }
  void tell(WorkerMilestone word, int local_rank);
  bool answer(Peer& peer, const channel::Message& message, int descriptor = -1);

  boost::asio::io_context& loop_;
  Events events_;
  boost::asio::posix::stream_descriptor listener_;
  Timer pause_;
  Timer next_turn_;
  std::map<int, Worker> workers_;   // by local rank; those that have connected
  std::set<int> steppers_;          // local ranks that have said their steps in an earlier round
  std::map<uint64_t, Peer> peers_;  // by a number of our own
  uint64_t next_peer_ = 0;
  std::vector<uint64_t> throttled_;  // peers that have used up their turn
  const std::shared_ptr<Arenas> arenas_;
  int64_t newest_snapshot_ = 0;  // of this round
  int turned_away_ = 0;          // since the last pause
  bool is_stopping_ = false;
  std::array<uint8_t, channel::kMessageBytes + 1> buffer_{};
  std::shared_ptr<int> life_ =
      std::make_shared<int>();  // shared: handlers ask whether we still are
};

}  // namespace cpprun
