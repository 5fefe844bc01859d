// PhaseTimings: where the time of a start or of a recovery went. Points in time, each with the name
// of what ended there; what lies between two of them is a phase. Pure: the times are given.
#pragma once

#include <string>
#include <vector>

#include "common/time.hpp"

namespace cpprun::agent {

struct Phase {
  std::string name;  // "join", "spawn_first"
  Duration took{};
};

class PhaseTimings {
 public:
  // A new account begins at `at`; the one before is forgotten.
  void begin(Instant at);
  // Whether one has begun and not ended.
  bool is_open() const { return is_open_; }
  // What is called `name` has ended now. Nothing, if no account is open.
  void reach(const char* name, Instant at);
  // Ends the account; what it holds can be asked for until the next begins.
  void end() { is_open_ = false; }

  const std::vector<Phase>& all() const { return all_; }
  Duration total() const;

 private:
  bool is_open_ = false;
  Instant last_;
  std::vector<Phase> all_;
};

// "start 12.31 ms: exec 0.90, options 0.31, spawn last 0.52": in milliseconds.
std::string timings_text(const std::string& what, const PhaseTimings& phases);

}  // namespace cpprun::agent
