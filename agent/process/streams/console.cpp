#include "agent/process/streams/console.hpp"

#include <errno.h>
#include <linux/kcmp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/limits/agent.hpp"

namespace cpprun {
namespace {

// Stands for a writer that ended within a line.
const char kEndedWriter = 0;

constexpr std::string_view kNewLine = "\n";
constexpr std::string_view kClearLine = "\r\x1b[K";

}  // namespace

// `separator`: between the unfinished line of another writer and the new text.
void Console::begin(const void* writer, std::string_view separator) {
  if (at_ == text_.size()) {
    text_.clear();
    at_ = 0;
  }
  if (open_line_ == nullptr || open_line_ == writer) return;
  text_ += separator;
  if (separator == kNewLine && open_line_ != &kEndedWriter) interrupted_.insert(open_line_);
  open_line_ = nullptr;
}

void Console::append(const void* writer, const std::string& prefix, std::string_view part) {
  interrupted_.erase(writer);
  if (open_line_ != writer) text_ += prefix;
  text_.append(part);
  open_line_ = writer;
}

void Console::add_lines(const void* writer, const std::string& prefix, std::string_view lines) {
  if (is_closed_) return;
  if (interrupted_.erase(writer) > 0 && lines.starts_with('\n')) lines.remove_prefix(1);
  if (lines.empty()) return;
  begin(writer, kNewLine);
  bool has_prefix = open_line_ == writer;
  open_line_ = nullptr;
  if (prefix.empty()) {
    text_.append(lines);
    return;
  }
  while (!lines.empty()) {
    const size_t end = lines.find('\n') + 1;
    if (!has_prefix) text_ += prefix;
    has_prefix = false;
    text_.append(lines.substr(0, end));
    lines.remove_prefix(end);
  }
}

void Console::add_part(const void* writer, const std::string& prefix, std::string_view part) {
  if (is_closed_) return;
  begin(writer, kNewLine);
  append(writer, prefix, part);
  is_bar_ = false;
}

void Console::add_bar(const void* writer, const std::string& prefix, std::string_view bar) {
  if (is_closed_) return;
  begin(writer, is_bar_ ? kClearLine : kNewLine);
  append(writer, prefix, bar);
  is_bar_ = true;
}

void Console::forget(const void* writer) {
  interrupted_.erase(writer);
  if (open_line_ != writer) return;
  open_line_ = &kEndedWriter;
  is_bar_ = false;  // its last state stays
}

bool Console::is_full() const { return text_.size() - at_ >= limits::kOutputBufferBytes; }

Console::Outcome Console::fail(int error) {
  text_.clear();
  at_ = 0;
  if (error == EPIPE || error == ECONNRESET || error == EIO || error == EBADF) {
    is_closed_ = true;
    return Outcome::Closed;
  }
  error_ = error;  // such as a full disk: later text may fit again
  return Outcome::Done;
}

void Console::drop_written() {
  if (at_ < text_.size() / 2) return;  // rarely, because erase() moves the rest
  text_.erase(0, at_);
  at_ = 0;
}

Console::Outcome Console::flush() {
  while (!is_empty()) {
    const ssize_t size = output_.write_some(std::string_view(text_).substr(at_));
    if (size >= 0) {
      at_ += static_cast<size_t>(size);
    } else if (errno == EAGAIN) {
      drop_written();
      return Outcome::Blocked;
    } else if (errno != EINTR) {
      return fail(errno);
    }
  }
  return Outcome::Done;
}

bool is_same_place(int a, int b) {
  const long order = ::syscall(SYS_kcmp, ::getpid(), ::getpid(), KCMP_FILE, a, b);
  if (order == 0) return true;
  struct stat one {
  }, two{};
  if (::fstat(a, &one) < 0 || ::fstat(b, &two) < 0) return false;
  // Two open descriptions of one regular file have separate positions, so they are two places.
  return one.st_dev == two.st_dev && one.st_ino == two.st_ino && !S_ISREG(one.st_mode);
}

}  // namespace cpprun
