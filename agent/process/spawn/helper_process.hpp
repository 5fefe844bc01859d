// HelperProcess: a program that the agent runs for itself, such as py-spy or the node check. It has
// a session of its own, an empty stdin, and one pipe for stdout and stderr. The orphan sweep leaves
// it and its session alone.
//
// Thread: one, which must live as long as the object: the kernel kills the program with the thread
// that started it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

class HelperProcess {
 public:
  // Looks for argv[0] on the agent's PATH. `variables` ("NAME=value") replace those of the agent's
  // environment. The error names the program.
  static Result<HelperProcess> start(const std::vector<std::string>& argv,
                                     const std::vector<std::string>& variables = {});
  HelperProcess(HelperProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)),
        pidfd_(std::move(other.pidfd_)),
        output_(std::move(other.output_)) {}
  ~HelperProcess() { end(); }

  int pidfd() const { return pidfd_.get(); }  // readable when the program has ended
  int output() const { return output_.get(); }

  // Blocks until the program has ended, or until then. Returns whether it has ended.
  bool await_end(Instant until) const;
  // Kills what still runs in its process group, and reaps the program; blocks for a second at most.
  // Returns the status as waitpid() does. Unset: SIGKILL has not ended it yet.
  std::optional<int> end();

 private:
  HelperProcess(int pid, UniqueFd pidfd, UniqueFd output)
      : pid_(pid), pidfd_(std::move(pidfd)), output_(std::move(output)) {}

  int pid_ = 0;  // 0: reaped, or given up
  UniqueFd pidfd_;
  UniqueFd output_;
};

// Runs the program, and returns its stdout and stderr in one text of at most `most` bytes. Kills
// the program after `takes` and returns its output so far; "": it could not be started.
std::string output_of(const std::vector<std::string>& argv, Duration takes, size_t most);

}  // namespace cpprun
