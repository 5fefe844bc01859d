#include "rendezvous/server/host_check.hpp"

#include <arpa/inet.h>

#include <array>
#include <cctype>

namespace cpprun {
namespace {

std::string plain(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  std::string lower;
  for (const char c : name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

bool is_address(int family, const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(family, text.c_str(), bytes.data()) == 1;
}

}  // namespace

void HostCheck::allow(std::string_view name) {
  if (name.empty()) return;
  names_.insert(plain(name));
  for (const std::string& domain : domains_) names_.insert(plain(name) + "." + plain(domain));
}

bool HostCheck::allows(std::string_view host) const {
  if (host.empty()) return true;
  if (host.front() == '[') {
    const size_t end = host.find(']');
    return end != std::string_view::npos &&
           is_address(AF_INET6, std::string(host.substr(1, end - 1)));
  }
  const std::string name = plain(host.substr(0, host.find(':')));
  return names_.contains(name) || is_address(AF_INET, name);
}

}  // namespace cpprun
