// The costs per training step and per snapshot of the worker channel and the arena slots.
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "agent/process/channel/worker_channel.hpp"
#include "bench/parts/parts.hpp"
#include "common/check.hpp"
#include "cpprun/worker/agent_link.hpp"
#include "snapshot_files/folders/arena_slots.hpp"

namespace cpprun::bench {
namespace {

// An agent's end of the channel on a thread of its own, with this process as its worker.
class OwnAgent {
 public:
  OwnAgent() {
    const std::string name = "cpprun/bench/" + std::to_string(::getpid());
    WorkerChannel::Events events;
    events.worker_of = [](int) { return 0; };
    channel_ = std::make_unique<WorkerChannel>(loop_, name, std::move(events),
                                               std::make_shared<Arenas>([] { return 0; }));
    thread_ = std::thread([this] { loop_.run(); });
    ::setenv("CPPRUN_AGENT", name.c_str(), 1);
    // The agent identifies a worker by its session id, which is 0 for a leader outside this PID
    // namespace. Fails harmlessly if this process leads a session already.
    ::setsid();
    CPPRUN_CHECK(worker::has_agent());
  }
  ~OwnAgent() {
    loop_.stop();
    thread_.join();
  }

 private:
  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{
      loop_.get_executor()};
  std::unique_ptr<WorkerChannel> channel_;
  std::thread thread_;
};

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

}  // namespace

BENCH_PART(worker_heartbeat) {
  return [agent = std::make_shared<OwnAgent>()](size_t n) {
    while (n-- > 0) worker::heartbeat(static_cast<int64_t>(n));
  };
}

BENCH_PART(arena_slot) {
  const size_t bytes = snapshot_files::ArenaSlots::arena_bytes(1 << 20);
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(std::aligned_alloc(64, bytes)), Free());
  return [memory, bytes](size_t n) {
    snapshot_files::ArenaSlots slots({memory.get(), bytes});
    while (n-- > 0) {
      const auto step = static_cast<int64_t>(n);
      keep(slots.begin({step, 1, 0, 2}, 1 << 20).ok());
      slots.staged(0);
      keep(slots.complete(step));
    }
  };
}

}  // namespace cpprun::bench
