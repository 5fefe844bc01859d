// The user's health check of a worker that has left its round. Private to elastic.
#pragma once

#include "cpprun/elastic/elastic.hpp"

namespace cpprun::detail {

// Runs options.health_check on a thread of its own, because it may hang in a broken device. On a
// failure it prints the reason on stderr and throws HealthCheckError.
void check_health(const ElasticOptions& options);

}  // namespace cpprun::detail
