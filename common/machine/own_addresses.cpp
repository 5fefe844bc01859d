#include "common/machine/own_addresses.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cctype>
#include <memory>
#include <set>
#include <sstream>

#include "common/endpoint.hpp"
#include "common/machine/files.hpp"
#include "common/machine/sockets.hpp"

namespace cpprun {
namespace {

bool is_numeric(const std::string& host) {
  std::array<uint8_t, sizeof(in6_addr)> ignored{};
  std::string plain = host.substr(0, host.find('%'));  // a scope, as in fe80::1%eth0
  return inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
         inet_pton(AF_INET6, plain.c_str(), ignored.data()) == 1;
}

std::set<std::string> all_interface_addresses() {
  std::set<std::string> all;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return all;
  for (ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr != nullptr) all.insert(numeric_name(*entry->ifa_addr));
  }
  freeifaddrs(list);
  return all;
}

std::vector<std::string> read_search_domains() {
  std::vector<std::string> domains;
  std::istringstream lines(read_file("/etc/resolv.conf").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word != "search" && word != "domain") continue;
    domains.clear();  // the last line counts
    while (words >> word) domains.push_back(word);
  }
  return domains;
}

}  // namespace

std::vector<std::string> known_addresses(const std::string& host) {
  if (is_numeric(host)) return {host};
  if (host == "localhost") return {"127.0.0.1", "::1"};
  return {};
}

Result<ResolvedHost> resolve_host(const std::string& host) {
  if (auto known = known_addresses(host); !known.empty())
    return ResolvedHost{std::move(known), true};
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
    resolved.addresses.push_back(numeric_name(*entry->ai_addr));
  }
  return resolved;
}

std::vector<std::string> interface_addresses(size_t most) {
  std::vector<std::string> found;
  for (const std::string& address : all_interface_addresses()) {
    const bool is_wanted = !address.empty() && !is_loopback(address);
    if (is_wanted && found.size() < most) found.push_back(address);
  }
  return found;
}

std::string first_own_address(const std::vector<std::string>& addresses) {
  std::set<std::string> own = all_interface_addresses();
  for (const std::string& address : addresses) {
    if (address.starts_with("127.") || own.contains(address)) return address;
  }
  return "";
}

bool is_same_host_name(const std::string& host, const std::string& own) {
  const auto plain = [](std::string name) {
    if (name.ends_with('.')) name.pop_back();
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return name;
  };
  const auto label = [](const std::string& name) { return name.substr(0, name.find('.')); };
  const std::string a = plain(host);
  const std::string b = plain(own);
  const bool have_domains = a.find('.') != std::string::npos && b.find('.') != std::string::npos;
  return !a.empty() && (have_domains ? a == b : label(a) == label(b));
}

const std::vector<std::string>& search_domains() {
  static const std::vector<std::string> domains = read_search_domains();
  return domains;
}

bool is_port_free(const std::string& address, uint16_t port) {
  const std::optional<SocketAddress> place = tcp_address(address, port);
  return !place || bind_tcp(*place).is_open();
}

}  // namespace cpprun
