// What an operator's tool proves its knowledge of the token over: the coordinator's nonce and the
// whole order. Both sides write it down from what the messages mean, so that other bytes for the
// same meaning change nothing. Pure.
#pragma once

#include <string>

#include "rendezvous/protocol/orders.hpp"

namespace cpprun::control {

std::string proven_words(const std::string& nonce, const Command& command);

}  // namespace cpprun::control
