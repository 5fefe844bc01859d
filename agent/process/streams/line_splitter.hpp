// LineSplitter: splits a worker's bytes into blocks of whole lines for the console, and parts of
// lines that are too long or whose end is late. Pure: no I/O, no clock. It does not change any
// byte.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "common/limits/agent.hpp"

namespace cpprun {

class LineSplitter {
 public:
  // `on_lines(text)`: one or more whole lines with their newlines; the first one continues a part
  // that was shown before. `on_part(text)`: a piece of a line that continues.
  template <class OnLines, class OnPart>
  void feed(std::string_view bytes, OnLines&& on_lines, OnPart&& on_part) {
    if (!held_.empty()) bytes.remove_prefix(complete_held(bytes, on_lines));
    const size_t end = bytes.rfind('\n');
    if (end != std::string_view::npos) {
      on_lines(bytes.substr(0, end + 1));
      bytes.remove_prefix(end + 1);
    }
    held_.append(bytes);
    while (held_.size() >= limits::kLineBytes) {
      on_part(std::string_view(held_).substr(0, limits::kLineBytes));
      held_.erase(0, limits::kLineBytes);
    }
  }

  // The held text up to its last lone carriage return: states of a progress bar that another state
  // follows. "": none yet. A carriage return at the very end does not count, because a newline may
  // follow.
  std::string take_progress_bars() {
    size_t end = held_.size() < 2 ? std::string::npos : held_.rfind('\r', held_.size() - 2);
    if (end == std::string::npos) return {};
    std::string bars = held_.substr(0, end + 1);
    held_.erase(0, end + 1);
    return bars;
  }

  // take_part() would return text.
  bool has_part() const { return !held_.empty(); }
  std::string take_part() { return std::exchange(held_, {}); }

 private:
  template <class OnLines>
  size_t complete_held(std::string_view bytes, OnLines&& on_lines) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) return 0;
    held_.append(bytes.substr(0, end + 1));
    on_lines(std::string_view(held_));
    held_.clear();
    return end + 1;
  }

  std::string held_;
};

}  // namespace cpprun
