// One HTTP request with a JSON body, over TCP or TLS. Blocking: for threads that may wait.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/http/url.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

// Further header lines: names and values, without line breaks.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Sends `json` and returns the status of the reply. A server with TLS must have a certificate that
// the machine trusts. An error names the host, and not the path, which may hold a token. It does
// not follow redirections. The look-up of the host's name has no limit of its own.
Result<int> http_post(const Url& url, const std::string& json, Duration limit,
                      const HttpHeaders& headers = {});

// The same, again after a broken connection, no reply, or a reply of 429 or 5xx, as often as
// common/limits/notice.hpp allows. An error also for any reply but 2xx.
Status http_post_with_retries(const Url& url, const std::string& json,
                              const HttpHeaders& headers = {});

}  // namespace cpprun
