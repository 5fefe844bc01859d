// Proof that somebody knows a secret, without telling it: HMAC-SHA256 (libsodium's).
//
// Pure: what must be fresh comes from the caller.
#pragma once

#include <string>
#include <string_view>

namespace cpprun {

// 64 lower-case hex digits. `words` hold what the other side has chosen at random for this once,
// else a proof that was overheard would do again.
std::string hmac_of(std::string_view secret, std::string_view words);

// Is this such a proof? Takes the same time whatever is wrong with it.
bool verify_hmac(std::string_view secret, std::string_view words, std::string_view mac);

}  // namespace cpprun
