// Console: our own stdout or stderr, shared by the output of many workers. Keeps their lines whole
// and their prefixes right, holds what the reader does not take yet, and never blocks.
//
// Not a thread: the output thread owns it.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "common/machine/nonblocking_output.hpp"

namespace cpprun {

class Console {
 public:
  // `fd` stays the caller's.
  explicit Console(int fd) : output_(fd) {}

  // Whole lines of a writer, or a piece of a line that goes on. `writer` only serves to tell
  // writers apart.
  void add_lines(const void* writer, const std::string& prefix, std::string_view lines);
  void add_part(const void* writer, const std::string& prefix, std::string_view part);
  void forget(const void* writer);  // it adds nothing any more

  enum class Outcome { Done, Blocked, Closed };  // Closed: the reader went away; said once
  Outcome flush();

  bool is_closed() const { return is_closed_; }
  bool is_full() const;  // its writers must wait
  bool is_empty() const { return at_ == text_.size(); }
  int poll_fd() const { return output_.poll_fd(); }      // to be waited for when blocked
  int take_error() { return std::exchange(error_, 0); }  // errno of text that had to be dropped

 private:
  void begin(const void* writer);
  Outcome fail(int error);
  void drop_written();

  NonblockingOutput output_;
  std::string text_;
  size_t at_ = 0;                    // of text_ is written
  const void* open_line_ = nullptr;  // whose line stands unfinished at the end; nullptr: none
  bool is_closed_ = false;
  int error_ = 0;
};

// Do both descriptors lead to one place, so that their lines must not be mixed?
bool is_same_place(int a, int b);

}  // namespace cpprun
