// StdinControl: the agent's side of --hosts (launcher/ssh/plan/control_lines.hpp). Takes standard
// input away from the process, reads the job's secret and variables from it, and later requests to
// stop. The end of the stream means that the launcher or the ssh connection is gone: the agent then
// acts as on SIGTERM.
//
// Thread: the main thread; watch() starts another one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/tls/job_secret.hpp"

namespace cpprun::ssh {

class StdinControl {
 public:
  // Whether the command line has --stdin-control.
  static bool is_asked_for(const std::vector<std::string>& args);
  // Reads the header, and sets its variables in this process's environment. Blocks until the
  // launcher has sent it. Call it before there are threads.
  static Result<std::unique_ptr<StdinControl>> take();
  ~StdinControl();

  // Null: the job has certificates.
  const std::shared_ptr<const JobSecret>& secret() const { return secret_; }
  // Sends its hello and blocks until all hosts are there. False: the launcher has given the job up,
  // and has reported the reason.
  bool wait_for_begin();
  // From now on requests to stop become signals to this process. The process may fork before this,
  // not after it. Error: there is no thread.
  Status watch();

 private:
  explicit StdinControl(UniqueFd input) : input_(std::move(input)) {}
  Status read_header();
  Result<std::string> read_line();

  UniqueFd input_;
  std::string received_;
  size_t total_ = 0;  // bytes of the header
  std::shared_ptr<const JobSecret> secret_;
};

}  // namespace cpprun::ssh
