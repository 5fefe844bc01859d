#include "common/machine/identity.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <cstdlib>

#include "common/check.hpp"
#include "common/text.hpp"

namespace cpprun {

std::array<uint8_t, 16> random_bytes() {
  std::array<uint8_t, 16> bytes{};
  CPPRUN_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return bytes;
}

std::string random_hex(size_t blocks) {
  std::string digits;
  for (size_t i = 0; i < blocks; ++i) digits += text::hex(random_bytes());
  return digits;
}

std::string admin_token() {
  const char* token = std::getenv("CPPRUN_ADMIN_TOKEN");
  return token == nullptr ? "" : token;
}

std::string own_host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace cpprun
