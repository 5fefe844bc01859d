// Console: the launcher's own stdout or stderr, shared by the output of many workers. It keeps
// lines whole and prefixes right, buffers what the reader does not accept yet, and never blocks.
//
// Thread: the output thread's.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/machine/nonblocking_output.hpp"

namespace cpprun {

class Console {
 public:
  // The caller keeps the ownership of `fd`.
  explicit Console(int fd) : output_(fd) {}

  // Add whole lines of a writer, or a piece of a line that continues. `writer` only identifies the
  // writer.
  void add_lines(const void* writer, const std::string& prefix, std::string_view lines);
  void add_part(const void* writer, const std::string& prefix, std::string_view part);
  // Adds a state of a progress bar, or a piece of one. It replaces another writer's bar on a
  // terminal, so that the bars of many writers take one line.
  void add_bar(const void* writer, const std::string& prefix, std::string_view bar);
  void forget(const void* writer);  // the writer ends

  enum class Outcome { Done, Blocked, Closed };  // Closed: the reader has gone; reported once
  Outcome flush();

  bool is_within_line() const { return open_line_ != nullptr; }
  bool is_closed() const { return is_closed_; }
  bool is_full() const;  // its writers must wait
  bool is_empty() const { return at_ == text_.size(); }
  int poll_fd() const { return output_.poll_fd(); }      // to wait on after Blocked
  int take_error() { return std::exchange(error_, 0); }  // errno of dropped text

 private:
  void begin(const void* writer, std::string_view separator);
  void append(const void* writer, const std::string& prefix, std::string_view part);
  Outcome fail(int error);
  void drop_written();

  NonblockingOutput output_;
  std::string text_;
  size_t at_ = 0;                    // this much of text_ is written
  const void* open_line_ = nullptr;  // the writer of the unfinished line at the end; nullptr: none
  bool is_bar_ = false;              // that line is a progress bar
  std::set<const void*> interrupted_;  // writers whose unfinished line another one has ended
  bool is_closed_ = false;
  int error_ = 0;
};

// Whether both descriptors lead to one file or terminal, so that their lines need one Console.
bool is_same_place(int a, int b);

}  // namespace cpprun
