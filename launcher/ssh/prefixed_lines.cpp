#include "launcher/ssh/prefixed_lines.hpp"

#include "common/limits/ssh.hpp"

namespace cpprun::ssh {

// `line` has no newline.
void PrefixedLines::add_line(std::string_view line, std::string& out) const {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const size_t bar = line.rfind('\r');
  if (bar != std::string_view::npos) line.remove_prefix(bar + 1);
  out += prefix_;
  out += line;
  out += '\n';
}

void PrefixedLines::add_lines(std::string_view lines, std::string& out) const {
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    add_line(lines.substr(0, end), out);
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
  }
}

std::string PrefixedLines::feed(std::string_view bytes, Instant now) {
  std::string out;
  splitter_.feed(
      bytes, [&](std::string_view lines) { add_lines(lines, out); },
      [&](std::string_view part) { add_line(part, out); });
  if (!splitter_.has_part()) {
    part_deadline_ = Instant::never();
  } else if (part_deadline_ == Instant::never() || !out.empty()) {
    postpone_part(now);
  }
  return out;
}

std::string PrefixedLines::show_part(Instant now) {
  if (now < part_deadline_) return "";
  std::string text = splitter_.take_progress_bars();
  if (!text.empty()) {
    part_since_ = now;
  } else if (now >= part_since_ + limits::kMergedPartialLine) {
    text = splitter_.take_part();
  }
  part_deadline_ = splitter_.has_part() ? now + limits::kMergedProgressBar : Instant::never();
  std::string out;
  if (!text.empty()) add_line(text, out);
  return out;
}

void PrefixedLines::postpone_part(Instant now) {
  part_since_ = now;
  part_deadline_ = now + limits::kMergedProgressBar;
}

std::string PrefixedLines::finish() {
  part_deadline_ = Instant::never();
  std::string out;
  if (splitter_.has_part()) add_line(splitter_.take_part(), out);
  return out;
}

}  // namespace cpprun::ssh
