// RequestedStop: a stop of the round that a draining node or an admin command has asked for. The
// workers of all nodes save, and what fails meanwhile costs no restart.
//
// A core: no I/O, no clock.
#pragma once

#include <string>

namespace cpprun {

class RequestedStop {
 public:
  // `node`: the name of the draining node; empty: an admin command, after which all nodes stay.
  void begin(const std::string& node) {
    is_active_ = has_saved_ = true;
    drained_by_ = node;
  }
  // The next round has formed.
  void end() { is_active_ = has_saved_ = false; }

  // The workers of a member are gone.
  void on_workers_gone(bool has_saved) { has_saved_ = has_saved_ && has_saved; }
  // A node drains after the admin command that has asked it to.
  void on_draining(const std::string& node) {
    if (is_active_ && drained_by_.empty()) drained_by_ = node;
  }

  bool is_active() const { return is_active_; }
  // A node drains, and all members whose workers are gone have saved.
  bool is_saved_drain() const { return is_active_ && !drained_by_.empty() && has_saved_; }
  const std::string& drained_by() const { return drained_by_; }

 private:
  bool is_active_ = false;
  bool has_saved_ = false;
  std::string drained_by_;
};

}  // namespace cpprun
