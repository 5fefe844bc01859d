#include "launcher/network/own_addresses.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <memory>
#include <set>

namespace cpprun {
namespace {

std::string numeric(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
  }
  return text.data();
}

bool is_numeric(const std::string& host) {
  std::array<uint8_t, sizeof(in6_addr)> ignored{};
  std::string plain = host.substr(0, host.find('%'));  // a scope, as in fe80::1%eth0
  return inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
         inet_pton(AF_INET6, plain.c_str(), ignored.data()) == 1;
}

std::set<std::string> interface_addresses() {
  std::set<std::string> all;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return all;
  for (ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr != nullptr) all.insert(numeric(entry->ifa_addr));
  }
  freeifaddrs(list);
  return all;
}

}  // namespace

Result<ResolvedHost> resolve_host(const std::string& host) {
  if (is_numeric(host)) return ResolvedHost{{host}, true};
  if (host == "localhost") return ResolvedHost{{"127.0.0.1", "::1"}, true};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    return Error{ErrorKind::Network, "the name '" + host + "' can't be resolved (" +
                                         gai_strerror(error) + "); give an address instead"};
  }
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  ResolvedHost resolved;
  for (addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    resolved.addresses.push_back(numeric(entry->ai_addr));
  }
  return resolved;
}

std::string first_own_address(const std::vector<std::string>& addresses) {
  std::set<std::string> own = interface_addresses();
  for (const std::string& address : addresses) {
    if (address.starts_with("127.") || own.contains(address)) return address;
  }
  return "";
}

}  // namespace cpprun
