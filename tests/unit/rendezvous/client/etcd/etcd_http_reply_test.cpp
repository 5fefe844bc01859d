// HTTP replies, whole, in pieces, and from hostile servers.
#include "rendezvous/client/etcd/http_reply.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cpprun::etcd {
namespace {

using State = HttpReply::State;

const std::vector<std::string> kGood = {
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: application/json\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
};

TEST(HttpReply, ParsesWholeAndInPieces) {
  for (const std::string& text : kGood) {
    for (const size_t piece : {text.size(), size_t{1}, size_t{7}}) {
      HttpReply reply;
      State state = State::NeedMore;
      for (size_t at = 0; at < text.size(); at += piece) {
        EXPECT_EQ(state, State::NeedMore);
        state = reply.feed(std::string_view(text).substr(at, piece));
      }
      ASSERT_EQ(state, State::Whole) << reply.why();
      EXPECT_EQ(reply.status(), 200);
      EXPECT_EQ(reply.body(), "hello");
      EXPECT_TRUE(reply.keeps_connection());
    }
  }
}

TEST(HttpReply, RejectsATruncatedReply) {
  for (const std::string& text : kGood) {
    for (size_t size = 0; size < text.size(); ++size) {
      HttpReply reply;
      ASSERT_EQ(reply.feed(text.substr(0, size)), State::NeedMore) << size;
      EXPECT_EQ(reply.end(), State::Broken) << size;
    }
  }
}

TEST(HttpReply, AClosedConnectionMayEndABody) {
  HttpReply reply;
  EXPECT_EQ(reply.feed("HTTP/1.0 503 Busy\r\n\r\nlater"), State::NeedMore);
  EXPECT_EQ(reply.end(), State::Whole);
  EXPECT_EQ(reply.status(), 503);
  EXPECT_EQ(reply.body(), "later");
  EXPECT_FALSE(reply.keeps_connection());
}

TEST(HttpReply, DropsAConnectionWithUnrequestedBytes) {
  HttpReply reply;
  EXPECT_EQ(reply.feed(kGood[0] + "HTTP/1.1 200 OK\r\n"), State::Whole);
  EXPECT_FALSE(reply.keeps_connection());
}

TEST(HttpReply, HostileServersCauseAnErrorWithinLittleMemory) {
  const std::vector<std::string> heads = {
      "\x15\x03\x01",  // TLS
      "SSH-2.0-x\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
      "HTTP/1.1 200 OK\r\nX: " + std::string(20'000, 'a'),
  };
  for (const std::string& head : heads) {
    HttpReply reply;
    EXPECT_EQ(reply.feed(head), State::Broken) << head.substr(0, 60);
  }
  // Endless replies: chunk by chunk, header by header, or only a body.
  for (const auto& [start, more] : std::vector<std::pair<std::string, std::string>>{
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "extension"},
           {"HTTP/1.1 200 OK\r\n", "X: y\r\n"},
           {"HTTP/1.0 200 OK\r\n\r\n", std::string(4096, 'x')}}) {
    HttpReply reply;
    State state = reply.feed(start);
    for (int i = 0; i < 300'000 && state == State::NeedMore; ++i) state = reply.feed(more);
    EXPECT_EQ(state, State::Broken) << start << more.substr(0, 10);
  }
}

}  // namespace
}  // namespace cpprun::etcd
