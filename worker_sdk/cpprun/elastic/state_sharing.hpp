// Sharing of state at the begin of a round. Private to elastic.
#pragma once

#include <cstdint>

#include "cpprun/elastic/elastic_state.hpp"

namespace cpprun::detail {

class ElasticRunner;

// Gives all ranks the state of the donor (donor.hpp), and binds the samplers to the round. All
// ranks of the default group call it. Returns the steps that the state contains.
int64_t share_state(ElasticRunner& runner, ElasticState& state);

}  // namespace cpprun::detail
