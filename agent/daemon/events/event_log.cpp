#include "agent/daemon/events/event_log.hpp"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <string_view>

#include "common/limits/agent.hpp"
#include "common/log/log.hpp"
#include "common/result.hpp"

namespace cpprun {

EventLog::EventLog(const std::string& path) : path_(path) {
  if (path_.empty()) return;
  constexpr int kMode = 0600;  // like the other logs: a job's output may be secret
  file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kMode);
  if (file_ < 0) give_up(system_error("it cannot be opened", errno).text);
}

EventLog::~EventLog() { close(); }

void EventLog::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

void EventLog::write(const std::string& lines) {
  if (file_ >= 0 && !lines.empty()) append(lines);
}

void EventLog::append(const std::string& lines) {
  if (written_ + lines.size() > limits::kEventsBytes) {
    give_up("it has reached its limit of " + std::to_string(limits::kEventsBytes) + " bytes");
    return;
  }
  const std::string text = is_torn_ ? "\n" + lines : lines;
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t done = ::write(file_, rest.data(), rest.size());
    if (done > 0) {
      const auto size = static_cast<size_t>(done);
      written_ += size;
      is_torn_ = rest[size - 1] != '\n';
      rest.remove_prefix(size);
    } else if (done == 0 || errno != EINTR) {
      return give_up(system_error("it cannot be written", done == 0 ? ENOSPC : errno).text);
    }
  }
}

void EventLog::give_up(const std::string& why) {
  if (std::exchange(has_said_, true)) return;
  log::warning("events are missing in " + path_ + ": " + why);
}

}  // namespace cpprun
