#include "agent/process/streams/stream_pump.hpp"

#include <errno.h>
#include <unistd.h>

#include <algorithm>

#include "common/limits/agent.hpp"

namespace cpprun {
namespace {

bool contains_any(std::string_view line, const std::vector<std::string>& filters) {
  return std::ranges::any_of(filters, [&](const std::string& filter) {
    return line.find(filter) != std::string_view::npos;
  });
}

}  // namespace

StreamPump::StreamPump(OutputStream stream, Console* console,
                       std::function<void(const std::string&, int)> on_file_error)
    : stream_(std::move(stream)), console_(console), on_file_error_(std::move(on_file_error)) {}

StreamPump::~StreamPump() {
  show_part();
  if (duplicates_.has_part()) add_duplicate_line(duplicates_.take_part());
  if (console_ != nullptr) console_->forget(this);
}

StreamPump::Outcome StreamPump::read_once(char* buffer, size_t size, Instant now) {
  const ssize_t got = ::read(fd(), buffer, size);
  if (got > 0) {
    on_bytes(std::string_view(buffer, static_cast<size_t>(got)), now);
    return Outcome::More;
  }
  if (got < 0 && errno == EAGAIN) return Outcome::Nothing;
  if (got < 0 && errno == EINTR) return Outcome::More;
  return Outcome::End;
}

void StreamPump::on_bytes(std::string_view bytes, Instant now) {
  if (writes_file()) write_file(*stream_.file, bytes);
  const bool has_lines_only = !stream_.prefix.empty() && !stream_.is_terminal;
  const std::string_view shown = has_lines_only ? lines_.feed(bytes) : bytes;
  if (stream_.duplicate_file) add_duplicates(shown);
  if (console_ != nullptr) show(shown, now);
  if (stream_.is_stderr) last_lines_.feed(bytes);
}

void StreamPump::show(std::string_view bytes, Instant now) {
  bool is_new_part = !splitter_.has_part();
  splitter_.feed(
      bytes,
      [&](std::string_view lines) {
        show_text(lines, &Console::add_lines);
        is_new_part = true;
        is_bar_ = false;
      },
      [&](std::string_view part) { show_text(part, &Console::add_part); });
  if (stream_.is_terminal) {
    const std::string bars = splitter_.take_progress_bars();
    if (!bars.empty()) show_text(bars, &Console::add_bar);
    is_bar_ = (is_bar_ && splitter_.has_part()) || !bars.empty();
  }
  if (stream_.is_alone) show_part();  // no other worker's line can mix with it
  if (!splitter_.has_part()) {
    part_deadline_ = Instant::never();
  } else if (is_new_part) {
    part_deadline_ = now + limits::kPartialLine;
  }
}

void StreamPump::show_part() {
  part_deadline_ = Instant::never();
  if (console_ == nullptr || !splitter_.has_part()) return;
  const std::string part = splitter_.take_part();
  show_text(part, is_bar_ ? &Console::add_bar : &Console::add_part);
}

void StreamPump::show_text(std::string_view text,
                           void (Console::*add)(const void*, const std::string&,
                                                std::string_view)) {
  const bool has_states = !stream_.prefix.empty() && text.find('\r') != std::string_view::npos;
  if (!has_states) return (console_->*add)(this, stream_.prefix, text);
  (console_->*add)(this, stream_.prefix, with_prefix_of_states(text, stream_.prefix));
}

void StreamPump::add_duplicates(std::string_view bytes) {
  const auto each_line = [&](std::string_view lines) {
    while (!lines.empty()) {
      const size_t end = lines.find('\n');
      add_duplicate_line(lines.substr(0, end));
      lines.remove_prefix(end + 1);
    }
  };
  duplicates_.feed(bytes, each_line, [&](std::string_view part) { add_duplicate_line(part); });
}

void StreamPump::add_duplicate_line(std::string_view line) {
  if (!contains_any(line, stream_.duplicate_filters)) return;
  std::string text = stream_.prefix;
  text.append(line).append("\n");
  write_file(*stream_.duplicate_file, text);
}

void StreamPump::write_file(LogFile& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = ::write(file.fd.get(), bytes.data(), bytes.size());
    if (size >= 0) {
      bytes.remove_prefix(static_cast<size_t>(size));
    } else if (errno != EINTR) {
      on_file_error_(file.name, errno);
      return;
    }
  }
}

}  // namespace cpprun
