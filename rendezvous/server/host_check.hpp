// HostCheck: by which names HTTP clients may ask a server.
//
// A page of a foreign site can make a browser in the cluster's network ask this server, if the
// foreign name resolves to our address (DNS rebinding). The browser then sends the foreign name as
// Host, and shows that page what the server replies. So only names that belong to this server are
// allowed; a numeric address can't be rebound. Pure. Internal to rendezvous/server.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cpprun {

class HostCheck {
 public:
  // `domains`: a client may append one of them to a name.
  explicit HostCheck(std::vector<std::string> domains) : domains_(std::move(domains)) {}

  // An empty name changes nothing.
  void allow(std::string_view name);
  // `host`: the value of the Host header, with or without a port. Empty: the client sent none, so
  // it is no browser.
  bool allows(std::string_view host) const;

 private:
  const std::vector<std::string> domains_;
  std::set<std::string> names_{"localhost"};  // in lower case, without a final dot
};

}  // namespace cpprun
