// Which Host headers a server answers: a foreign name may have been rebound to its address.
#include "rendezvous/server/host_check.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

class HostNames : public testing::Test {
 public:
  HostNames() {
    check.allow("node7");
    check.allow("Train.Example.COM.");
    check.allow("");
  }
  HostCheck check{{"cluster.local"}};
};

TEST_F(HostNames, AllowsAddresses) {
  for (const char* host : {"127.0.0.1", "10.0.0.5:29400", "[::1]", "[fe80::1]:29400"}) {
    EXPECT_TRUE(check.allows(host)) << host;
  }
}

TEST_F(HostNames, AllowsItsOwnNames) {
  for (const char* host : {"", "localhost", "LOCALHOST:29400", "node7", "node7:80", "node7.",
                           "node7.cluster.local:29400", "train.example.com"}) {
    EXPECT_TRUE(check.allows(host)) << host;
  }
}

TEST_F(HostNames, RefusesOtherNames) {
  for (const char* host :
       {"evil.example", "node7.evil.example:29400", "127.0.0.1.evil.example", "localhost.evil",
        "[evil.example]", "[::1", ":80", "2130706433", "127.1", ".", "train.example.com.evil"}) {
    EXPECT_FALSE(check.allows(host)) << host;
  }
}

}  // namespace
}  // namespace cpprun::test
