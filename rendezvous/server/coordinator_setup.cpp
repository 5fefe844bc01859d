#include "rendezvous/server/coordinator_setup.hpp"

#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "common/check.hpp"
#include "common/text.hpp"

namespace cpprun {

namespace {

std::string own_host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

Epoch epoch_now() {
  auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return Epoch(std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count());
}

}  // namespace

std::string random_secret() {
  std::array<uint8_t, 16> bytes{};
  CPPRUN_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return text::hex(bytes);
}

CoordinatorOptions coordinator_options() {
  CoordinatorOptions options;
  options.host = own_host_name();
  options.epoch = epoch_now();
  options.make_secret = random_secret;
  return options;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace cpprun
