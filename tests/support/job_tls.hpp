// The TLS of a job whose members share a secret.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "common/tls/job_tls.hpp"

namespace cpprun::test {

inline std::shared_ptr<const JobTls> tls_of(const std::string& secret,
                                            const std::string& run_id = "job") {
  TlsCredentials credentials;
  credentials.secret = *JobSecret::copy_of(secret);
  auto made = JobTls::load(std::move(credentials), run_id);
  EXPECT_TRUE(made) << (made ? "" : made.error().text);
  return *made;
}

}  // namespace cpprun::test
