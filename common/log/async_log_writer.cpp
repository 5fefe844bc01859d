#include "common/log/async_log_writer.hpp"

#include <errno.h>
#include <poll.h>

#include <utility>

#include "common/limits/log.hpp"
#include "common/text.hpp"
#include "common/thread/detached_thread.hpp"

namespace cpprun::log {

void AsyncLogWriter::write(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (pending_.size() + text.size() > limits::kLogPendingBytes) {
    ++dropped_;
    return;
  }
  pending_ += text;
  if (!has_thread_ && !write_out()) start_thread();
}

bool AsyncLogWriter::write_out() {
  while (!pending_.empty()) {
    const ssize_t size = output_.write_some(pending_);
    if (size < 0 && errno == EAGAIN) return false;
    if (size < 0 && errno != EINTR) pending_.clear();  // the console was closed
    if (size > 0) pending_.erase(0, static_cast<size_t>(size));
    if (pending_.empty() && dropped_ > 0) {
      pending_ = "cpprun: " + text::count(std::exchange(dropped_, 0), "message") +
                 " left out here: nobody read them for too long\n";
    }
  }
  return true;
}

// After an error the next write() tries again.
void AsyncLogWriter::start_thread() {
  has_thread_ = start_detached_thread([this] { wait_for_reader(); }).ok();
}

void AsyncLogWriter::wait_for_reader() {
  while (true) {
    pollfd ready{output_.poll_fd(), POLLOUT, 0};
    ::poll(&ready, 1, -1);
    const std::lock_guard lock(mutex_);
    if (!write_out()) continue;
    has_thread_ = false;
    written_.notify_all();
    return;
  }
}

void AsyncLogWriter::finish(std::optional<Duration> most) {
  std::unique_lock lock(mutex_);
  const auto is_written = [this] { return !has_thread_; };
  if (!most) {
    written_.wait(lock, is_written);
  } else if (!written_.wait_for(lock, *most, is_written)) {
    pending_.clear();
    has_thread_ = false;  // the thread may never return from poll(); do not wait for it again
  }
}

}  // namespace cpprun::log
