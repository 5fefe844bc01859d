// Process: a process with its standard streams that the launcher has started, on this machine
// (ChildProcess) or by a relay on another host (Relay). ProcessSink: what gets its output and its
// end.
//
// Thread: the main thread.
#pragma once

#include <string_view>

#include "common/time.hpp"
#include "launcher/ssh/plan/relay_frames.hpp"

namespace cpprun::ssh {

class ChildProcess;

class ProcessSink {
 public:
  virtual ~ProcessSink() = default;
  virtual void on_out(std::string_view bytes, Instant now) = 0;
  virtual void on_err(std::string_view bytes, Instant now) = 0;
  // The process was not started after all.
  virtual void on_refused(std::string_view why, Instant now) = 0;
  // The last call.
  virtual void on_end(const ProcessEnd& end, Instant now) = 0;
};

class Process {
 public:
  virtual ~Process() = default;  // kills it
  // What the process does not take now is sent later.
  virtual void send(std::string_view bytes) = 0;
  virtual void close_input() = 0;
  virtual void kill() = 0;
  virtual size_t unsent() const = 0;  // bytes
  // This process, if it is on this machine and has to be polled; else null.
  virtual ChildProcess* child() { return nullptr; }
};

}  // namespace cpprun::ssh
