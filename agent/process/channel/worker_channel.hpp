// WorkerChannel: the agent's socket for its workers, an abstract unix socket. The channel accepts
// connections of processes in a live worker's session. Such a process gets the worker's page and
// arena and its checksums, may report that the worker is ready or why it ends, and asks for
// permission to commit a snapshot. Bytes: rendezvous/protocol/worker/worker_channel.hpp, memory:
// rendezvous/protocol/worker/worker_page.hpp, arenas.hpp.
//
// Idle connections cost nothing. The channel closes the connection of a foreign process or after an
// invalid message, and reads a peer that sends too much more slowly, so that the cost of all peers
// is bounded. Thread: the loop's.
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
#include <span>
#include <string>
#include <vector>

#include "agent/process/channel/arenas.hpp"
#include "agent/process/diagnostics/stack_collector.hpp"
#include "common/failure/worker_exit.hpp"
#include "common/lifetime.hpp"
#include "common/loop/background_work.hpp"
#include "common/loop/timer.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/worker_observation.hpp"
#include "rendezvous/protocol/worker/worker_channel.hpp"
#include "rendezvous/protocol/worker/worker_page.hpp"

namespace cpprun {

// Messages of workers that the agent passes on. Unset: no receiver.
struct WorkerEvents {
  // A worker's milestones on the way to its first step. Resumed may come often, the others once per
  // worker and round.
  std::function<void(int local_rank, WorkerMilestone milestone)> on_milestone{};
  // A worker committed the snapshot of this step. `path` is absolute and otherwise unchecked. May
  // come often, and more than once for a step.
  std::function<void(int local_rank, int64_t step, const std::string& path)> on_snapshot{};
  // A worker could not load the round's snapshot and resumed from the one of `step` instead; -1:
  // from the beginning. Unchecked; may come often.
  std::function<void(int local_rank, int64_t step)> on_fell_back{};
  // A worker asks for permission to inject a fault of the plan. The receiver calls `answer` at most
  // once, at any time. Unset: no fault is permitted.
  std::function<void(int local_rank, const channel::FaultPermitRequest&,
                     std::function<void(bool)> answer)>
      on_fault_permit_request{};
  std::function<void(int local_rank, const channel::Began&)> on_began{};  // may come often
  // A worker can regroup (worker_channel.hpp). May come often.
  std::function<void(int local_rank)> on_can_regroup{};
  // A worker has left its process group, as it was asked; -1: it had completed no step.
  std::function<void(int local_rank, int64_t step)> on_released{};
};

class WorkerChannel {
 public:
  struct Events : WorkerEvents {
    // The local rank of the live worker that leads this session; unset: there is none.
    std::function<std::optional<int>(int session)> worker_of{};
    std::function<void(int local_rank)> on_ready{};  // once per worker and round
    // The reason why no worker may give a snapshot its final name now; empty: it may.
    std::function<std::string()> commit_refusal{};
  };
  // The last report of an ended worker.
  struct FinalReport {
    std::string report;  // empty: none
    std::optional<Heartbeat> heartbeat;
    bool made_no_step = false;  // it reports its steps, and finished none in this round
    // The report, for a worker that has ended now and has not written the error file.
    std::optional<ErrorReport> error() const;
  };

  // `name`: of the abstract unix socket, without its leading zero. If the kernel refuses it the
  // channel stays closed: see is_open(). `arenas`: not null; may be shared.
  WorkerChannel(boost::asio::io_context& loop, const std::string& name, Events events,
                std::shared_ptr<Arenas> arenas);

  bool is_open() const { return listener_.is_open(); }
  // Forgets all workers but `survivors` (by local rank), and keeps their arenas. Requires: no other
  // worker lives.
  void begin_round(size_t workers, const std::set<int>& survivors = {});
  // Asks the worker to leave its process group. False: it cannot regroup.
  bool ask_to_regroup(int local_rank);
  // Gives a survivor its variables of the round and its new stdout and stderr. False: it does not
  // read its messages.
  bool send_new_round(int local_rank, const std::vector<std::string>& variables, int out, int err);
  void ask_to_stop();  // also workers that connect later in the round
  // This worker saves and exits when ask_to_stop() is called.
  bool can_save(int local_rank) const;
  // Its newest heartbeat; unset: it has sent none.
  std::optional<Heartbeat> heartbeat(int local_rank) const;
  // Where it dumps torch's flight recorder on request; empty: it does not.
  std::optional<TraceFiles> trace_files(int local_rank) const;
  // Fills in its heartbeat and its sections.
  void observe(int local_rank, WorkerObservation& worker) const;
  // The number of the descriptor, inside the worker, of the file to which the worker writes its
  // stack on kStackSignal (worker_page.hpp); unset: it has none. Unchecked input of the worker.
  std::optional<int> stack_file(int local_rank) const;
  // Reads the remaining messages of the worker and closes its connections.
  FinalReport worker_exited(int local_rank);

 private:
  struct Unmap {
    void operator()(WorkerPage* page) const;
  };
  struct Worker {
    std::unique_ptr<WorkerPage, Unmap> page;  // null: no process of it has connected
    UniqueFd page_memory;                     // the descriptor for the worker
    std::string report;
    bool is_ready = false;
    bool has_stepped = false;
    bool is_regrouping = false;           // asked to
    std::optional<uint64_t> regroups_by;  // the peer that sent Elastic
    size_t connections = 0;
    size_t connected = 0;  // in total, in this round
  };
  struct Peer {
    boost::asio::posix::stream_descriptor socket;
    int local_rank;
    uint64_t id = 0;
    uint32_t version = 0;  // of its Hello; 0: none came yet
    int messages = 0;      // in this turn
    Instant turn_ends{};
    bool is_summing = false;  // waits for checksums
  };

  const WorkerPage* page_of(int local_rank) const;
  bool made_no_step(int local_rank) const;
  static void renew(Worker& worker);
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

  bool handle(Peer& peer, const channel::Message& message);
  bool on_hello(Peer& peer, const channel::Hello& hello);
  bool make_page(Worker& worker);
  bool on(Peer& peer, const channel::Ready& ready);
  bool on(Peer& peer, const channel::Report& report);
  bool on(Peer& peer, const channel::ArenaRequest& request);
  bool on(Peer& peer, const channel::PeerArenaRequest& request);
  bool on(Peer& peer, const channel::CommitRequest& request);
  bool on(Peer& peer, const channel::Snapshot& snapshot);
  bool on(Peer& peer, const channel::Resumed& resumed);
  bool on(Peer& peer, const channel::FaultPermitRequest& request);
  bool on(Peer& peer, const channel::Began& began);
  bool on(Peer& peer, const channel::FirstStep& first);
  bool on(Peer& peer, const channel::Elastic& elastic);
  bool on(Peer& peer, const channel::Released& released);
  bool on(Peer& peer, const channel::ChecksumRequest& request);
  // Only agents send these.
  bool on(Peer&, const channel::Hello&) { return false; }
  bool on(Peer&, const channel::Page&) { return false; }
  bool on(Peer&, const channel::Arena&) { return false; }
  bool on(Peer&, const channel::Permission&) { return false; }
  bool on(Peer&, const channel::Regroup&) { return false; }
  bool on(Peer&, const channel::NewRound&) { return false; }
  bool on(Peer&, const channel::Checksums&) { return false; }
  bool send_to_elastic(int local_rank, const channel::Message& message,
                       std::span<const int> descriptors);
  void report_milestone(WorkerMilestone milestone, int local_rank);
  bool answer(Peer& peer, const channel::Message& message, int descriptor = -1);

  boost::asio::io_context& loop_;
  Events events_;
  boost::asio::posix::stream_descriptor listener_;
  Timer pause_;
  Timer next_turn_;
  std::map<int, Worker> workers_;   // by local rank; those that have connected
  std::set<int> steppers_;          // local ranks that reported steps in an earlier round
  std::map<uint64_t, Peer> peers_;  // by a number that the channel assigns
  uint64_t next_peer_ = 0;
  std::vector<uint64_t> throttled_;  // peers that used up their turn
  const std::shared_ptr<Arenas> arenas_;
  BackgroundWork background_;
  int64_t newest_snapshot_ = 0;  // of this round
  int rejected_ = 0;             // since the last pause
  bool is_stopping_ = false;
  std::array<uint8_t, channel::kMessageBytes + 1> buffer_{};
  Lifetime lifetime_;
};

}  // namespace cpprun
