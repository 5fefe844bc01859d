#include "common/proof/node_id.hpp"

#include <charconv>
#include <string>

#include "common/proof/hmac.hpp"

namespace cpprun {
namespace {

uint64_t number_of(std::string_view key, std::string_view purpose) {
  constexpr size_t kDigits = 16;
  constexpr int kBase = 16;
  const std::string digits = hmac_of(key, purpose);
  uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + kDigits, number, kBase);
  return number;
}

}  // namespace

Incarnation node_id_of(std::string_view key) {
  return Incarnation(number_of(key, "cpprun-node-1"));
}

int64_t first_connection_of(std::string_view key) {
  return static_cast<int64_t>(number_of(key, "cpprun-connection-1") >> 2);
}

}  // namespace cpprun
