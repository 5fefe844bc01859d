#include "common/http/url.hpp"

#include <algorithm>

#include "common/limits/notice.hpp"

namespace cpprun {
namespace {

Error bad(const std::string& why) { return Error{ErrorKind::BadValue, "the URL " + why}; }

bool is_plain(char c) { return c > ' ' && c < '\x7f'; }

}  // namespace

Result<Url> parse_url(std::string_view text) {
  if (text.size() > limits::kUrlBytes) return bad("is too long");
  if (!std::ranges::all_of(text, is_plain))
    return bad("has blanks or characters that are not ASCII");
  Url url;
  url.is_tls = text.starts_with("https://");
  if (!url.is_tls && !text.starts_with("http://"))
    return bad("must begin with http:// or https://");
  text.remove_prefix(url.is_tls ? 8 : 7);
  text = text.substr(0, text.find('#'));
  const size_t end = text.find_first_of("/?");
  const std::string_view host = text.substr(0, end);
  if (host.find('@') != std::string_view::npos)
    return bad("has a user name, which is not supported");
  constexpr uint16_t kHttp = 80;
  constexpr uint16_t kHttps = 443;
  if (host.empty() || host.starts_with(":")) return bad("names no host");
  Result<Endpoint> endpoint = parse_endpoint(host, url.is_tls ? kHttps : kHttp);
  if (!endpoint || endpoint->host.empty()) return bad("names no host");
  url.endpoint = *endpoint;
  url.host = std::string(host);
  const std::string_view rest = end == std::string_view::npos ? "" : text.substr(end);
  url.target = rest.starts_with("/") ? std::string(rest) : "/" + std::string(rest);
  return url;
}

}  // namespace cpprun
