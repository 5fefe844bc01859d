// URLs for requests: parts, defaults, and what is refused.
#include "common/http/url.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

TEST(UrlTest, HasPartsWithDefaults) {
  const Result<Url> plain = parse_url("http://hooks.example.org");
  ASSERT_TRUE(plain) << plain.error().text;
  EXPECT_FALSE(plain->is_tls);
  EXPECT_EQ(plain->endpoint.host, "hooks.example.org");
  EXPECT_EQ(plain->endpoint.port, 80);
  EXPECT_EQ(plain->target, "/");
  const Result<Url> whole = parse_url("https://[::1]:8443/services/T0?x=1#part");
  ASSERT_TRUE(whole) << whole.error().text;
  EXPECT_TRUE(whole->is_tls);
  EXPECT_EQ(whole->endpoint.port, 8443);
  EXPECT_EQ(whole->host, "[::1]:8443");
  EXPECT_EQ(whole->target, "/services/T0?x=1");
  const Result<Url> query = parse_url("https://example.org?x");
  ASSERT_TRUE(query);
  EXPECT_EQ(query->endpoint.port, 443);
  EXPECT_EQ(query->target, "/?x");
}

TEST(UrlTest, RefusesWhatItCannotSendTo) {
  for (const char* wrong :
       {"", "ftp://x/", "example.org/x", "http://", "http:///x", "http://user:secret@x/",
        "http://x/a b", "http://x/\r\nHost: y", "http://x:99999/", "http://x/\xc3\xa4"}) {
    const Result<Url> url = parse_url(wrong);
    EXPECT_FALSE(url) << wrong;
    const std::string why = url ? "" : url.error().text;
    EXPECT_EQ(why.find("secret"), std::string::npos) << "it may hold a token";
  }
  EXPECT_FALSE(parse_url("http://x/" + std::string(3'000, 'a')));
}

}  // namespace
}  // namespace cpprun::test
