// Progress bars in output with a prefix: a carriage return before or after each state takes the
// cursor back to the begin of the line, where the prefix stands. Pure: no I/O, no clock.
#pragma once

#include <string>
#include <string_view>

namespace cpprun {

// For a console that is no terminal: makes each state a line, as torchrun does.
class StatesToLines {
 public:
  // Valid until the next call.
  std::string_view feed(std::string_view bytes) {
    if (!has_returned_ && bytes.find('\r') == std::string_view::npos) {
      if (!bytes.empty()) is_within_line_ = bytes.back() != '\n';
      return bytes;
    }
    text_.clear();
    for (const char byte : bytes) add(byte);
    return text_;
  }

 private:
  void add(char byte) {
    if (byte == '\r') {
      if (is_within_line_) text_ += '\n';
      has_returned_ |= is_within_line_;
      is_within_line_ = false;
    } else if (byte == '\n' && has_returned_) {
      has_returned_ = false;  // "\r\n" is the end of one line
    } else {
      text_ += byte;
      is_within_line_ = byte != '\n';
      has_returned_ = false;
    }
  }

  bool is_within_line_ = false;
  bool has_returned_ = false;  // the last line was ended by a carriage return
  std::string text_;
};

// For a terminal: the prefix once more after each carriage return that no newline follows.
inline std::string with_prefix_of_states(std::string_view text, const std::string& prefix) {
  std::string marked;
  for (size_t at = 0; at < text.size(); ++at) {
    marked += text[at];
    const bool is_line_end = at + 1 < text.size() && text[at + 1] == '\n';
    if (text[at] == '\r' && !is_line_end) marked += prefix;
  }
  return marked;
}

}  // namespace cpprun
