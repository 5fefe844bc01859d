// SlurmSecret: the job's secret under Slurm, in a file of the submit directory, which all nodes
// share. The first node of the step makes the file, the others wait for it, and the first node
// removes it when its launcher ends. Before the agent starts; blocks for a bounded time.
#pragma once

#include <memory>
#include <string>

#include "agent/core/config.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "common/tls/job_secret.hpp"

namespace cpprun {

class SlurmSecret {
 public:
  // Nothing to do: an object without a file, and a null secret. `is_first_node`: makes the file
  // unless another launcher of the node has. `wait`: how long the others wait for it.
  static Result<SlurmSecret> obtain(const std::string& path, bool is_first_node, Duration wait);

  SlurmSecret() = default;
  ~SlurmSecret();
  SlurmSecret(SlurmSecret&& other) noexcept;
  SlurmSecret& operator=(SlurmSecret&& other) noexcept;

  const std::shared_ptr<const JobSecret>& secret() const { return secret_; }

 private:
  std::string own_path_;  // the file that this object has made; "": none
  std::shared_ptr<const JobSecret> secret_;
};

}  // namespace cpprun
