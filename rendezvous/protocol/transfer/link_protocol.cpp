#include "rendezvous/protocol/transfer/link_protocol.hpp"

#include <optional>
#include <vector>

#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun::link_protocol {
namespace {

constexpr std::string_view kCheck = "cpprun-link-1";

}  // namespace

std::string encode(const Request& request) {
  return std::string(kCheck) + " " + request.secret + " " + std::to_string(request.bytes) + "\n";
}

Result<Request> decode_request(std::string_view line) {
  const std::vector<std::string> words = text::split(line, ' ');
  const bool is_check = words.size() == 3 && words[0] == kCheck && !words[1].empty();
  const std::optional<int64_t> bytes = is_check ? text::parse_int(words[2]) : std::nullopt;
  if (!bytes || *bytes < 0 || *bytes > limits::kLinkCheckMiBMax << 20) {
    return Error{ErrorKind::Protocol, "the peer sent no valid request for a check of the link"};
  }
  return Request{words[1], *bytes};
}

}  // namespace cpprun::link_protocol
