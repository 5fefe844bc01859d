#include "rendezvous/protocol/sniff.hpp"

#include <algorithm>
#include <string_view>

#include "common/check.hpp"

namespace cpprun {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kValidate = "\x00\xCE\xF7\x85\x3C"sv;
constexpr std::string_view kControl = "CPRN";
constexpr std::string_view kTls = "\x16\x03"sv;  // record of a handshake, version 3.x
constexpr std::string_view kMethods[] = {"GET ",     "HEAD ",  "POST ",  "PUT ",    "DELETE ",
                                         "OPTIONS ", "PATCH ", "TRACE ", "CONNECT "};
constexpr size_t kEnough = 5;
constexpr uint8_t kLastLegacyCode = 11;

// Compares the common length.
bool agree(std::string_view bytes, std::string_view pattern) {
  size_t both = std::min(bytes.size(), pattern.size());
  return bytes.substr(0, both) == pattern.substr(0, both);
}

// A legacy SET is 00 and the u64 length of a key. Keys are short, so bytes 3 and 4 are 0.
Protocol sniff_zero(std::string_view bytes) {
  if (bytes.size() < kEnough) {
    bool may_be_set = bytes.size() < 4 || bytes[3] == 0;
    return agree(bytes, kValidate) || may_be_set ? Protocol::NeedMore : Protocol::Unknown;
  }
  if (agree(bytes, kValidate)) return Protocol::ModernStore;
  return bytes[3] == 0 && bytes[4] == 0 ? Protocol::LegacyStore : Protocol::Unknown;
}

}  // namespace

Protocol sniff(std::span<const uint8_t> bytes) {
  CPPRUN_CHECK(!bytes.empty());
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (bytes[0] == 0) return sniff_zero(text);
  if (bytes[0] <= kLastLegacyCode) return Protocol::LegacyStore;
  if (agree(text, kControl)) {
    return text.size() >= kControl.size() ? Protocol::Control : Protocol::NeedMore;
  }
  if (agree(text, kTls)) return text.size() >= kTls.size() ? Protocol::Tls : Protocol::NeedMore;
  for (std::string_view method : kMethods) {
    if (!agree(text, method)) continue;
    return text.size() >= std::min(kEnough, method.size()) ? Protocol::Http : Protocol::NeedMore;
  }
  return Protocol::Unknown;
}

}  // namespace cpprun
