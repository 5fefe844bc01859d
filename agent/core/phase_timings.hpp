// PhaseTimings: the phases of a start or of a recovery. Each phase ends at a named point in time
// and begins at the previous one. Pure: the caller passes the times.
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
  // Forgets all phases; the first new one begins at `at`.
  void begin(Instant at);
  // Between begin() and end().
  bool is_open() const { return is_open_; }
  // Ends the phase `name` at `at`. No effect unless is_open().
  void reach(const char* name, Instant at);
  // all() and total() stay valid until the next begin().
  void end() { is_open_ = false; }

  const std::vector<Phase>& all() const { return all_; }
  Duration total() const;

 private:
  bool is_open_ = false;
  Instant last_;
  std::vector<Phase> all_;
};

// "start 12.31 ms: exec 0.90, options 0.31, spawn last 0.52", in milliseconds.
std::string timings_text(const std::string& what, const PhaseTimings& phases);

}  // namespace cpprun::agent
