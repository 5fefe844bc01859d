#include "common/proof/hmac.hpp"

#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/utils.h>

#include <array>
#include <cstdint>

#include "common/text.hpp"

namespace cpprun {
namespace {

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string hmac_of(std::string_view secret, std::string_view words) {
  crypto_auth_hmacsha256_state state;
  std::array<uint8_t, crypto_auth_hmacsha256_BYTES> made{};
  crypto_auth_hmacsha256_init(&state, bytes_of(secret), secret.size());
  crypto_auth_hmacsha256_update(&state, bytes_of(words), words.size());
  crypto_auth_hmacsha256_final(&state, made.data());
  return text::hex(made);
}

bool verify_hmac(std::string_view secret, std::string_view words, std::string_view mac) {
  const std::string right = hmac_of(secret, words);
  return mac.size() == right.size() && sodium_memcmp(mac.data(), right.data(), right.size()) == 0;
}

}  // namespace cpprun
