#include "agent/daemon/events/event_log.hpp"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "common/limits/agent.hpp"
#include "common/log/log.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/text.hpp"

namespace cpprun {

// The file, and the lines that wait for it. The loop adds lines, the I/O thread writes them.
class EventLog::File {
 public:
  enum class Added { ToNone, ToOthers, Full };

  explicit File(int fd) : fd_(fd) {}

  // ToNone: the caller must call write_out() later. ToOthers: that is due already.
  Added add(const std::string& lines) {
    const std::lock_guard lock(mutex_);
    if (pending_bytes_ + lines.size() > limits::kEventsPendingBytes) return Added::Full;
    pending_bytes_ += lines.size();
    pending_.push_back(lines);
    return std::exchange(is_due_, true) ? Added::ToOthers : Added::ToNone;
  }
  // write_out() could not be posted; the next add() tries again.
  void on_not_posted() {
    const std::lock_guard lock(mutex_);
    is_due_ = false;
  }
  void write_out() {
    while (true) {
      const std::vector<std::string> texts = take();
      if (texts.empty()) return;
      for (const std::string& text : texts) append(text);
    }
  }
  void close() { fd_.reset(); }
  // Why lines are missing; "": none are.
  std::string trouble() {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }

 private:
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    pending_bytes_ = 0;
    if (pending_.empty()) is_due_ = false;
    return std::exchange(pending_, {});
  }

  void append(const std::string& lines) {
    const std::string text = is_torn_ ? "\n" + lines : lines;
    for (std::string_view rest = text; !rest.empty();) {
      const ssize_t done = ::write(fd_.get(), rest.data(), rest.size());
      if (done > 0) {
        const auto size = static_cast<size_t>(done);
        is_torn_ = rest[size - 1] != '\n';
        rest.remove_prefix(size);
      } else if (done == 0 || errno != EINTR) {
        const Error error = system_error("it cannot be written", done == 0 ? ENOSPC : errno);
        const std::lock_guard lock(mutex_);
        trouble_ = error.text;
        return;
      }
    }
  }

  std::mutex mutex_;  // for all but the next two, which the I/O thread uses alone
  UniqueFd fd_;
  bool is_torn_ = false;  // the last line in the file has no newline
  std::vector<std::string> pending_;
  size_t pending_bytes_ = 0;
  bool is_due_ = false;  // write_out() will take pending_
  std::string trouble_;
};

EventLog::EventLog(boost::asio::io_context& loop, const std::string& path, IoThread& io)
    : path_(path), io_(io), timer_(loop, [this] { write_out(); }) {
  if (path_.empty()) return;
  constexpr int kMode = 0600;  // like the other logs: a job's output may be secret
  const int fd = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kMode);
  if (fd >= 0) {
    file_ = std::make_shared<File>(fd);
  } else {
    give_up(system_error("it cannot be opened", errno).text);
  }
}

EventLog::~EventLog() { close(); }

void EventLog::write(const std::string& lines) {
  if (!file_ || lines.empty()) return;
  if (const std::string trouble = file_->trouble(); !trouble.empty()) give_up(trouble);
  if (accepted_ + lines.size() > limits::kEventsBytes) {
    ++dropped_;
    return give_up("it has reached its limit of " + std::to_string(limits::kEventsBytes) +
                   " bytes");
  }
  const File::Added added = file_->add(lines);
  if (added == File::Added::Full) {
    ++dropped_;
    return give_up("its file system does not answer");
  }
  // The first lines go at once: the file then has a block of the disk, which a worker may fill.
  const bool is_first = accepted_ == 0;
  accepted_ += lines.size();
  if (added == File::Added::ToOthers) return;
  is_first ? write_out() : timer_.set(boot_now() + limits::kEventsDelay);
}

void EventLog::write_out() {
  if (!file_) return;
  const bool is_posted = io_.post([file = file_] { file->write_out(); });
  if (!is_posted) file_->on_not_posted();
}

void EventLog::close() {
  const std::shared_ptr<File> file = std::exchange(file_, nullptr);
  if (!file) return;
  const auto end = [file] {
    file->write_out();
    file->close();
  };
  const bool is_written = io_.post(end) && io_.wait(limits::kIoEndTimeout);
  const std::string trouble = file->trouble();
  if (!is_written) give_up("its file system does not answer");
  if (!trouble.empty()) give_up(trouble);
  if (dropped_ > 0) log::info(text::count(dropped_, "event") + " dropped in " + path_);
}

void EventLog::give_up(const std::string& why) {
  if (std::exchange(has_warned_, true)) return;
  log::warning("events are missing in " + path_ + ": " + why);
}

}  // namespace cpprun
