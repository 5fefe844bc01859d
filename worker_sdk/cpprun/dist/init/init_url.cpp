// The grammar of init_method: env://, tcp://host:port?rank=0&world_size=2, file:///path.
#include "cpprun/dist/init/init_plan.hpp"

#include "common/text.hpp"

namespace cpprun::dist {
namespace {

[[noreturn]] void refuse(const std::string& url, const std::string& why) {
  throw DistArgumentError("init_method '" + url + "': " + why);
}

std::map<std::string, std::string> parse_query(const std::string& url, const std::string& text) {
  std::map<std::string, std::string> query;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('&', begin), text.size());
    const std::string pair = text.substr(begin, end - begin);
    const size_t equals = pair.find('=');
    if (equals == std::string::npos) refuse(url, "'" + pair + "' is not name=value");
    const std::string name = pair.substr(0, equals);
    if (name != "rank" && name != "world_size" && name != "store" && name != "use_libuv") {
      refuse(url, "'" + name + "' is not known; there are rank, world_size and store");
    }
    query[name] = pair.substr(equals + 1);
    begin = end + 1;
  }
  return query;
}

// "host:port" or "[::1]:port".
void parse_place(const std::string& url, const std::string& place, InitUrl& to) {
  const size_t bracket = place.rfind(']');
  const size_t colon = place.rfind(':');
  if (colon == std::string::npos || (bracket != std::string::npos && colon < bracket)) {
    refuse(url, "the port is missing; write tcp://host:port");
  }
  to.host = place.substr(0, colon);
  if (to.host.size() > 2 && to.host.front() == '[' && to.host.back() == ']') {
    to.host = to.host.substr(1, to.host.size() - 2);
  } else if (to.host.find(':') != std::string::npos) {
    refuse(url, "an IPv6 address needs brackets: tcp://[" + to.host + "]:port");
  }
  if (to.host.empty()) refuse(url, "the host is missing; write tcp://host:port");
  const auto port = text::parse_int(place.substr(colon + 1));
  if (!port || *port < 1 || *port > 65'535) {
    refuse(url, "'" + place.substr(colon + 1) + "' is no port from 1 to 65535");
  }
  to.port = static_cast<int>(*port);
}

}  // namespace

InitUrl parse_init_url(const std::string& url) {
  const size_t mark = url.find("://");
  if (mark == std::string::npos) refuse(url, "write env://, tcp://host:port or file:///path");
  InitUrl parsed;
  parsed.scheme = url.substr(0, mark);
  const std::string rest = url.substr(mark + 3);
  const size_t question = std::min(rest.find('?'), rest.size());
  const std::string place = rest.substr(0, question);
  if (question < rest.size()) parsed.query = parse_query(url, rest.substr(question + 1));
  if (parsed.scheme == "tcp") {
    parse_place(url, place, parsed);
  } else if (parsed.scheme == "file") {
    if (place.empty() || place.front() != '/') {
      refuse(url, "the path must begin with '/': file:///folder/name");
    }
    parsed.path = place;
  } else if (parsed.scheme != "env") {
    refuse(url, "'" + parsed.scheme + "' is not known; there are env://, tcp:// and file://");
  } else if (!place.empty()) {
    refuse(url, "env:// takes no host; write tcp://" + place);
  }
  return parsed;
}

}  // namespace cpprun::dist
