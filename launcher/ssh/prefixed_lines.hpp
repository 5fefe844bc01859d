// PrefixedLines: one output stream of one host as whole lines with a prefix. A line that stays
// unfinished is shown as a line after limits::kMergedPartialLine; of a progress bar, which a
// carriage return overwrites, only the newest state is shown, after limits::kMergedProgressBar.
// Pure: no I/O, no clock.
#pragma once

#include <string>
#include <string_view>

#include "agent/process/streams/line_splitter.hpp"
#include "common/time.hpp"

namespace cpprun::ssh {

class PrefixedLines {
 public:
  explicit PrefixedLines(std::string prefix) : prefix_(std::move(prefix)) {}

  // The text to show now: whole lines, or nothing.
  std::string feed(std::string_view bytes, Instant now);
  // When show_part() has something to show.
  Instant part_deadline() const { return part_deadline_; }
  std::string show_part(Instant now);
  // Nothing is read for now, so the rest of the line cannot come: its time begins anew.
  void postpone_part(Instant now);
  // The stream has ended.
  std::string finish();

 private:
  void add_line(std::string_view line, std::string& out) const;
  void add_lines(std::string_view lines, std::string& out) const;

  const std::string prefix_;
  LineSplitter splitter_;
  Instant part_since_ = Instant::never();
  Instant part_deadline_ = Instant::never();
};

}  // namespace cpprun::ssh
