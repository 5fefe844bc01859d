// LineSplitter: cuts a worker's bytes into what a console may show: blocks of whole lines, or a
// part of a line that is too long or has waited too long for its end. Pure: no I/O, no clock. Bytes
// pass as they are.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "common/limits/agent.hpp"

namespace cpprun {

class LineSplitter {
 public:
  // `on_lines(text)`: one or more whole lines, newline included; the first one continues a part
  // that was shown before. `on_part(text)`: a piece of a line that goes on.
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

  // What is held up to its last lone carriage return: a picture of a progress bar, which the next
  // one follows. "" if there is none yet; one at the very end may be the first half of an end of
  // line.
  std::string take_progress_bars() {
    size_t end = held_.size() < 2 ? std::string::npos : held_.rfind('\r', held_.size() - 2);
    if (end == std::string::npos) return {};
    std::string pictures = held_.substr(0, end + 1);
    held_.erase(0, end + 1);
    return pictures;
  }

  // Something is held back that take_part() would give.
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
