#include "snapshot_files/folders/nonce.hpp"

#include <unistd.h>

#include <array>
#include <fstream>
#include <random>

#include "common/check.hpp"
#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "snapshot_files/folders/commit.hpp"
#include "snapshot_files/folders/paths.hpp"

namespace cpprun::snapshot_files {
namespace {

constexpr size_t kNonceBytes = 16;
constexpr std::string_view kEnding = ".tmp";
constexpr std::string_view kLeft = "left-";

bool is_nonce(std::string_view text) { return text.size() == kNonceBytes && is_hex(text); }

// Identifies this boot: writers from before it are dead.
const std::string& this_boot() {
  static const std::string name = [] {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    if (boot.empty()) {
      std::array<char, 256> host{};
      ::gethostname(host.data(), host.size() - 1);
      boot = host.data();
    }
    return archive::crc32_text(archive::crc32(archive::bytes_of(boot)));
  }();
  return name;
}

}  // namespace

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string make_nonce() {
  std::random_device random;
  return this_boot() + archive::crc32_text(random());
}

bool is_of_this_boot(std::string_view nonce) { return nonce.starts_with(this_boot()); }

std::string draft_name(std::string_view name, std::string_view nonce) {
  CPPRUN_CHECK(nonce.size() == kNonceBytes);
  return "." + std::string(name) + "." + std::string(nonce) + std::string(kEnding);
}

std::optional<std::string> nonce_of_draft(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(kEnding)) return std::nullopt;
  name.remove_suffix(kEnding.size());
  const size_t dot = name.rfind('.');
  const std::string_view nonce = name.substr(dot + 1);
  if (dot == 0 || !is_nonce(nonce)) return std::nullopt;
  return std::string(nonce);
}

std::string left_name(std::string_view snapshot, std::string_view nonce) {
  CPPRUN_CHECK(is_nonce(nonce));
  return std::string(kLeft) + std::string(snapshot) + "." + std::string(nonce);
}

bool is_left_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (!name.starts_with(kLeft) || dot == std::string_view::npos) return false;
  return step_of_name(name.substr(kLeft.size(), dot - kLeft.size())) &&
         is_nonce(name.substr(dot + 1));
}

std::string draft_of(const std::string& path, const std::string& nonce) {
  return folder_of(path) + "/" + draft_name(path.substr(path.rfind('/') + 1), nonce);
}

}  // namespace cpprun::snapshot_files
