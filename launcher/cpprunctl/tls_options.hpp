// By what cpprunctl proves that it belongs to a job: the options and variables of cpprun.
#pragma once

#include <memory>
#include <string>

#include "common/result.hpp"
#include "common/tls/job_tls.hpp"

namespace cpprun {

struct TlsOptions {
  std::string secret_file;  // "": CPPRUN_SECRET_FILE, else CPPRUN_SECRET
  std::string cert;         // with key and ca; "": none
  std::string key;
  std::string ca;
};

// Null: neither a secret nor certificates are given, so connections are plain. `run_id` "": the
// only job.
Result<std::shared_ptr<const JobTls>> load_job_tls(const TlsOptions& options,
                                                   const std::string& run_id);

}  // namespace cpprun
