#include "launcher/cpprun/job_record.hpp"

#include <string>

#include "common/limits/agent.hpp"
#include "common/log/log.hpp"
#include "common/machine/files.hpp"
#include "common/thread/io_thread.hpp"

namespace cpprun {
namespace {

// Empty: this job keeps no record.
std::string record_path(const AgentConfig& config) {
  const ClusterConfig& cluster = config.cluster;
  const bool is_kept = cluster.kind == ClusterConfig::Kind::Kubernetes && !cluster.job_id.empty() &&
                       !config.snapshot_dir.empty();
  return is_kept ? config.snapshot_dir + "/.job-" + cluster.job_id + ".succeeded" : "";
}

}  // namespace

bool has_job_succeeded(const AgentConfig& config) {
  const std::string path = record_path(config);
  if (path.empty()) return false;
  IoThread io;
  const auto read = [path] { return read_file(path, 1).has_value(); };
  return io.result_of(read, limits::kJobRecordTimeout).value_or(false);
}

void record_success(const AgentConfig& config) {
  const std::string path = record_path(config);
  if (path.empty()) return;
  IoThread io;
  const auto write = [path, text = config.rendezvous.run_id + "\n"] {
    return write_file(path, text);
  };
  if (io.result_of(write, limits::kJobRecordTimeout).value_or(false)) return;
  log::warning("the success of the job could not be recorded in " + path +
               ": a pod that starts later will wait for the other nodes");
}

}  // namespace cpprun
