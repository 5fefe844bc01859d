#include "common/endpoint.hpp"

#include <algorithm>

#include "common/text.hpp"

namespace cpprun {
namespace {

Error bad(std::string_view text, const std::string& why) {
  return Error{ErrorKind::BadValue, "'" + std::string(text) + "' is no endpoint: " + why +
                                        "; write host:port, such as node0:29400 or [::1]:29400"};
}

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == ':' || c == '-' || c == '%' || static_cast<unsigned char>(c) >= 0x80;
}

struct Parts {
  std::string_view host;
  std::optional<std::string_view> port;
};

std::optional<Parts> cut(std::string_view text) {
  if (text.front() == '[') {
    size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    std::string_view rest = text.substr(close + 1);
    std::string_view host = text.substr(1, close - 1);
    if (rest.empty()) return Parts{host, std::nullopt};
    if (rest.front() != ':') return std::nullopt;
    return Parts{host, rest.substr(1)};
  }
  if (std::count(text.begin(), text.end(), ':') > 1) return Parts{text, std::nullopt};
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Parts{text, std::nullopt};
  return Parts{text.substr(0, colon), text.substr(colon + 1)};
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  bool is_v6 = endpoint.host.find(':') != std::string::npos;
  std::string host = is_v6 ? "[" + endpoint.host + "]" : endpoint.host;
  return host + ":" + std::to_string(endpoint.port);
}

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

bool is_loopback_host(std::string_view host) { return host == "localhost" || is_loopback(host); }

bool is_host(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_host_character);
}

Result<Endpoint> parse_endpoint(std::string_view text, std::optional<uint16_t> default_port) {
  std::string_view stripped = text::strip(text);
  Parts parts{"localhost", std::nullopt};
  if (!stripped.empty()) {
    std::optional<Parts> found = cut(stripped);
    if (!found) return bad(text, "the brackets do not fit");
    parts = *found;
  }
  if (parts.host.empty()) return bad(text, "the host is empty");
  if (!is_host(parts.host)) {
    return bad(text, "the host has a character that no host has");
  }
  if (!parts.port) {
    if (!default_port) return bad(text, "the port is missing");
    return Endpoint{std::string(parts.host), *default_port};
  }
  std::optional<int64_t> port = text::parse_int(*parts.port);
  bool is_digits = !parts.port->empty() && parts.port->size() <= 5 &&
                   std::all_of(parts.port->begin(), parts.port->end(),
                               [](char c) { return c >= '0' && c <= '9'; });
  if (!is_digits || !port || *port > 65535) {
    return bad(text, "the port must be a number from 0 to 65535");
  }
  return Endpoint{std::string(parts.host), static_cast<uint16_t>(*port)};
}

}  // namespace cpprun
