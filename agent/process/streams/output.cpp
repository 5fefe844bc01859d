#include "agent/process/streams/output.hpp"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/process/streams/output_loop.hpp"
#include "common/thread/blocked_signals.hpp"

namespace cpprun {

Output::Output(Events events, UniqueFd wake, UniqueFd epoll)
    : events_(std::move(events)), wake_(std::move(wake)), epoll_(std::move(epoll)) {
  const BlockedSignals blocked;  // SIGPIPE too: a broken pipe must be an error of write()
  thread_ = std::thread([this] { run(); });
}

Output::~Output() {
  post(nullptr);
  thread_.join();
}

void Output::post(Command command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t done = ::write(wake_.get(), &one, sizeof one);
}

void Output::run() {
  ::pthread_setname_np(::pthread_self(), "cpprun-output");
  OutputLoop loop(events_, std::move(epoll_));
  for (;;) {
    if (!loop.wait_and_work(wake_.get())) continue;
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t done = ::read(wake_.get(), &count, sizeof count);
    for (Command& command : take()) {
      if (!command) return;
      command(loop);
    }
    loop.settle();
  }
}

std::vector<Output::Command> Output::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(commands_, {});
}

Result<std::unique_ptr<Output>> Output::start(Events events) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!wake.is_open() || !epoll.is_open()) {
    return system_error("cannot carry the workers' output", errno);
  }
  return std::unique_ptr<Output>(new Output(std::move(events), std::move(wake), std::move(epoll)));
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

void Output::finish(uint64_t round) {
  post([round](OutputLoop& loop) { loop.finish(round); });
}

}  // namespace cpprun
