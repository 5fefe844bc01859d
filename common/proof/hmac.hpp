// HMAC-SHA256 (libsodium): proves the knowledge of a secret without sending it. Pure: nonces come
// from the caller.
#pragma once

#include <string>
#include <string_view>

namespace cpprun {

// 64 lower-case hex digits. `words` must contain a nonce that the verifier has chosen at random for
// one use, so that a recorded MAC cannot be replayed.
std::string hmac_of(std::string_view secret, std::string_view words);

// Compares in constant time.
bool verify_hmac(std::string_view secret, std::string_view words, std::string_view mac);

}  // namespace cpprun
