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
  if (pending_.size() + in_flight_ + text.size() > limits::kLogPendingBytes) {
    ++dropped_;
    return;
  }
  pending_ += text;
  if (has_thread_) return;
  if (output_.may_block() || !write_out()) start_thread();
}

bool AsyncLogWriter::write_out() {
  while (!pending_.empty()) {
    const ssize_t size = output_.write_some(pending_);
    if (size < 0 && errno == EAGAIN) return false;
    if (size < 0 && errno != EINTR) pending_.clear();  // the console was closed, the disk is full
    if (size > 0) pending_.erase(0, static_cast<size_t>(size));
    if (pending_.empty()) add_dropped();
  }
  return true;
}

void AsyncLogWriter::add_dropped() {
  if (dropped_ == 0) return;
  pending_ = "cpprun: " + text::count(std::exchange(dropped_, 0), "message") + " left out here: " +
             (output_.may_block() ? "the file system did not take them in time\n"
                                  : "they were not read for too long\n");
}

// After an error the next write() tries again.
void AsyncLogWriter::start_thread() {
  has_thread_ = start_detached_thread([this] { run(); }).ok();
}

void AsyncLogWriter::run() {
  while (!(output_.may_block() ? write_to_file() : wait_for_reader())) {
  }
}

// True: all text is written, and the thread ends.
bool AsyncLogWriter::wait_for_reader() {
  pollfd ready{output_.poll_fd(), POLLOUT, 0};
  ::poll(&ready, 1, -1);
  const std::lock_guard lock(mutex_);
  if (!write_out()) return false;
  has_thread_ = false;
  written_.notify_all();
  return true;
}

// As wait_for_reader(), but for a file: only its file system shows how long a write takes, so the
// thread writes without the lock.
bool AsyncLogWriter::write_to_file() {
  std::unique_lock lock(mutex_);
  const std::string text = std::exchange(pending_, {});
  in_flight_ = text.size();
  lock.unlock();
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t size = output_.write_some(rest);
    if (size == 0 || (size < 0 && errno != EINTR)) break;  // a full disk; later text may fit
    if (size > 0) rest.remove_prefix(static_cast<size_t>(size));
  }
  lock.lock();
  in_flight_ = 0;
  if (pending_.empty()) add_dropped();
  if (!pending_.empty()) return false;
  has_thread_ = false;
  written_.notify_all();
  return true;
}

void AsyncLogWriter::finish(std::optional<Duration> most) {
  std::unique_lock lock(mutex_);
  if (!has_thread_) write_out();  // no thread could be started
  const auto is_written = [this] { return !has_thread_; };
  if (!most) {
    written_.wait(lock, is_written);
  } else if (!written_.wait_for(lock, *most, is_written)) {
    pending_.clear();
    has_thread_ = false;  // the thread may never return from poll(); do not wait for it again
  }
}

}  // namespace cpprun::log
