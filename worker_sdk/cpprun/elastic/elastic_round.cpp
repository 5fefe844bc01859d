#include "cpprun/elastic/elastic_round.hpp"

#include <string>
#include <utility>

#include "cpprun/elastic/elastic_runner.hpp"
#include "cpprun/elastic/state_sharing.hpp"

namespace cpprun {

ElasticRound::ElasticRound(detail::ElasticRunner& runner, bool is_first)
    : runner_(runner), environment_(worker::environment_or_default()), is_first_(is_first) {}

int64_t ElasticRound::completed() const { return runner_.completed(); }
bool ElasticRound::is_over() const { return runner_.is_requested(); }

void ElasticRound::check() const {
  if (is_over()) throw RegroupError("another worker has failed");
}

dist::ProcessGroupGuard ElasticRound::init_process_group(dist::InitOptions options) {
  return dist::init_process_group(std::move(options));
}

void ElasticRound::commit(int64_t step) {
  if (step < 0)
    throw std::invalid_argument("ElasticRound::commit: the step is " + std::to_string(step) +
                                ", but must not be negative");
  runner_.commit(step);
}

int64_t ElasticRound::share_state(ElasticState& state) {
  return detail::share_state(runner_, state);
}

}  // namespace cpprun
