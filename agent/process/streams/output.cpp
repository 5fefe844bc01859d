#include "agent/process/streams/output.hpp"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>

#include "agent/process/streams/output_loop.hpp"
#include "common/limits/agent.hpp"
#include "common/thread/detached_thread.hpp"

namespace cpprun {

struct Output::State {
  Events events;
  UniqueFd wake;
  UniqueFd epoll;  // run() moves it to the OutputLoop
  std::mutex mutex;
  std::condition_variable has_ended;
  std::vector<Command> commands;
  bool is_ended = false;

  std::vector<Command> take() {
    const std::lock_guard lock(mutex);
    return std::exchange(commands, {});
  }
};

Output::~Output() {
  post(nullptr);
  std::unique_lock lock(state_->mutex);
  state_->has_ended.wait_for(lock, limits::kOutputEndTimeout, [this] { return state_->is_ended; });
}

void Output::post(Command command) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->commands.push_back(std::move(command));
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t done = ::write(state_->wake.get(), &one, sizeof one);
}

void Output::run(State& state) {
  ::pthread_setname_np(::pthread_self(), "cpprun-output");
  OutputLoop loop(state.events, std::move(state.epoll));
  for (;;) {
    if (!loop.wait_and_work(state.wake.get())) continue;
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t done = ::read(state.wake.get(), &count, sizeof count);
    for (Command& command : state.take()) {
      if (!command) return;
      command(loop);
    }
    loop.settle();
  }
}

Result<std::unique_ptr<Output>> Output::start(Events events) {
  const auto state = std::make_shared<State>();
  state->events = std::move(events);
  state->wake.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  state->epoll.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!state->wake.is_open() || !state->epoll.is_open()) {
    return system_error("cannot carry the workers' output", errno);
  }
  const Status started = start_detached_thread([state] {
    run(*state);
    const std::lock_guard lock(state->mutex);
    state->is_ended = true;
    state->has_ended.notify_all();
  });
  if (!started) return started.error();
  return std::unique_ptr<Output>(new Output(state));
}

void Output::begin_round() {
  post([](OutputLoop& loop) { loop.begin_round(); });
}

void Output::add(std::vector<OutputStream> streams) {
  // std::function requires copyable captures.
  auto held = std::make_shared<std::vector<OutputStream>>(std::move(streams));
  post([held](OutputLoop& loop) { loop.add(std::move(*held)); });
}

void Output::on_worker_exit(int local_rank) {
  post([local_rank](OutputLoop& loop) { loop.on_worker_exit(local_rank); });
}

void Output::ask_tail(int local_rank) {
  post([local_rank](OutputLoop& loop) { loop.send_tail(local_rank); });
}

void Output::resize(int rows, int columns) {
  post([rows, columns](OutputLoop& loop) { loop.resize(rows, columns); });
}

void Output::finish(uint64_t round, std::set<int> survivors) {
  post([round, survivors = std::move(survivors)](OutputLoop& loop) {
    loop.finish(round, survivors);
  });
}

}  // namespace cpprun
