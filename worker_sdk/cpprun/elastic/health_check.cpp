#include "cpprun/elastic/health_check.hpp"

#include <cstdio>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "common/text.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/internal/exception_text.hpp"

namespace cpprun::detail {
namespace {

constexpr size_t kHealthTextMost = 300;

[[noreturn]] void report_unhealthy(const std::string& why) {
  const std::string text = "the health check of this worker has failed: " + why;
  std::fprintf(stderr, "cpprun: rank %d is replaced: %s\n", worker::environment_or_default().rank,
               text::one_line(text, kHealthTextMost).c_str());
  throw HealthCheckError(text);
}

}  // namespace

void check_health(const ElasticOptions& options) {
  if (!options.health_check) return;
  auto outcome = std::make_shared<std::promise<bool>>();
  std::future<bool> result = outcome->get_future();
  std::thread([check = options.health_check, outcome] {
    try {
      outcome->set_value(check());
    } catch (...) {
      outcome->set_exception(std::current_exception());
    }
  }).detach();
  if (result.wait_for(options.health_check_timeout) != std::future_status::ready) {
    report_unhealthy("it has not ended within " +
                     std::to_string(options.health_check_timeout.count()) + " ms");
  }
  bool is_healthy = false;
  try {
    is_healthy = result.get();
  } catch (...) {
    report_unhealthy(worker::describe_exception(std::current_exception()).message);
  }
  if (!is_healthy) report_unhealthy("it has returned false");
}

}  // namespace cpprun::detail
